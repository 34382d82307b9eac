"""Weights of a saved model in another one, as far as they fit."""

import math
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple, Sequence, Tuple

from ..errors import ModelError
from ..files.json_file import read_json
from .parameters import FlatParameters, Slot
from .weights_file import read_slots, read_vector

# Names that a line lists.
N_NAMED = 4


class Piece(NamedTuple):
    """A parameter in a vector; tied ones are one.

    name (str): Of its node and itself, such as "linear.W".
    shape (Tuple[int, ...]): Its shape.
    offset (int): Its first float.
    """

    name: str
    shape: Tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        """Floats it holds."""
        return math.prod(self.shape)

    def of(self, vector: Any) -> Any:
        """Its part of a vector, in its shape; a view."""
        return vector[self.offset : self.offset + self.size].reshape(self.shape)

    def __str__(self) -> str:
        return f"{self.name} {'x'.join(map(str, self.shape))}"


def fit_weights(folder: Path, parameters: FlatParameters, grown: Tuple[int, int]) -> List[str]:
    """Take over all weights of a saved model that have a place in this one; the others stay
    as they are. Of two models of the same layers, these belong together by their order;
    else by names and shapes, in the order of the layers.

    folder (Path): Of the saved model.
    parameters (FlatParameters): Of this one.
    grown (Tuple[int, int]): How many classes there were, and are now: the first of them are
        those that were.
    RETURNS (List[str]): What fits and what does not, a line each.
    RAISES (ModelError): If the saved model is damaged, or nothing of it fits.
    """
    layout = read_json(folder / "layout.json")
    vector = read_vector(folder, layout)
    before, now = map(_distinct, (read_slots(folder, len(vector)), parameters.slots))
    n_fitting = 0
    larger: List[Piece] = []
    taken, filled = set(), set()
    for one, two in _pairs(before, now):
        if one.shape == two.shape or _has_grown(one.shape, two.shape, grown):
            place = tuple(slice(0, n) for n in one.shape)
            two.of(parameters.values)[place] = parameters.ops.asarray(one.of(vector))
            taken.add(one)
            filled.add(two)
            n_fitting += one.size
            if one.shape != two.shape:
                larger.append(two)
    if not taken:
        raise ModelError(
            f"{folder}  has no weights that fit into [agent.model]: it has {_names(before)}; "
            f"this model {_names(now)}. Copy [agent.model] from its config.cfg."
        )
    total = sum(piece.size for piece in now)
    of_all = f"{len(taken)} of {len(now)} parameters"
    lines = [f"weights: {n_fitting:,} of {total:,} are the model's ({of_all})"]
    if larger:
        lines.append(f"larger for new classes, whose weights are new: {_names(larger)}")
    fresh = [piece for piece in now if piece not in filled]
    if fresh:
        lines.append(f"new, as nothing fits: {_names(fresh)}")
    unused = [piece for piece in before if piece not in taken]
    if unused:
        lines.append(f"not used: {_names(unused)}")
    return lines


def _distinct(slots: Sequence[Slot]) -> List[Piece]:
    pieces = [Piece(f"{s.node_name}.{s.param}", s.shape, s.offset) for s in slots]
    return list({piece.offset: piece for piece in reversed(pieces)}.values())[::-1]


def _pairs(before: List[Piece], now: List[Piece]) -> Iterator[Tuple[Piece, Piece]]:
    if [piece.name for piece in before] == [piece.name for piece in now]:
        yield from zip(before, now)
        return
    a, b = ([piece[:2] for piece in pieces] for pieces in (before, now))
    for match in SequenceMatcher(a=a, b=b, autojunk=False).get_matching_blocks():
        for step in range(match.size):
            yield before[match.a + step], now[match.b + step]


def _has_grown(one: Tuple[int, ...], two: Tuple[int, ...], grown: Tuple[int, int]) -> bool:
    """Whether the shapes differ in one axis, as the numbers of classes do."""
    different = [pair for pair in zip(one, two) if pair[0] != pair[1]]
    return len(one) == len(two) and different == [grown] and grown[0] < grown[1]


def _names(pieces: List[Piece]) -> str:
    more = len(pieces) - N_NAMED
    return ", ".join(map(str, pieces[:N_NAMED])) + (f" and {more} more" if more > 0 else "")
