"""Weights of a saved model in another one, as far as they fit."""

from difflib import SequenceMatcher
from pathlib import Path
from typing import Iterator, List, NamedTuple, Sequence, Tuple

from ..errors import ModelError
from ..files.array_file import n_numbers
from ..files.json_file import read_json
from ..files.saved_model import read_meta
from .parameters import FlatParameters, Slot
from .weights_file import WEIGHTS, read_slots, read_vector

# Names that a line lists.
N_NAMED = 4


class Fit(NamedTuple):
    """How a saved model fits into another one.

    lines (List[str]): What fits and what does not, a line each.
    fresh (List[Slot]): Parameters of the new one for which there was nothing.
    """

    lines: List[str]
    fresh: List[Slot]


def check_fitting(folder: Path, agent: str) -> None:
    """See that a saved model has weights that another agent can look into.

    agent (str): Of the other agent, its name.
    RAISES (ModelError): If it has none, as one of a user's own agent.
    """
    if not (folder / "layout.json").is_file():
        there = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_file()))
        other = read_meta(folder).get("agent")
        raise ModelError(
            f"{folder}  has no weights that {agent} can begin with: {other} saved it "
            f"without layout.json (there is: {there}). Begin with a model of {agent}, or of an "
            "agent with [agent.model]."
        )


def saved_shapes(folder: Path) -> List[Tuple[int, ...]]:
    """The shapes of a saved model's parameters.

    RAISES (ModelError): If layout.json is missing or damaged.
    """
    return [slot.shape for slot in read_slots(folder, n_numbers(folder / WEIGHTS))]


def fit_weights(folder: Path, parameters: FlatParameters, grown: Tuple[int, int]) -> Fit:
    """Take over all weights of a saved model that have a place in this one; the others stay
    as they are. Of two models of the same layers, these belong together by their order;
    else by names and shapes, in the order of the layers.

    folder (Path): Of the saved model.
    parameters (FlatParameters): Of this one.
    grown (Tuple[int, int]): How many classes there were, and are now: the first of them are
        those that were.
    RETURNS (Fit): What fits and what does not.
    RAISES (ModelError): If the saved model is damaged, or nothing of it fits.
    """
    layout = read_json(folder / "layout.json")
    vector = read_vector(folder, layout)
    before, now = map(_distinct, (read_slots(folder, len(vector)), parameters.slots))
    n_fitting = 0
    larger: List[Slot] = []
    taken, filled = set(), set()
    for one, two in _pairs(before, now):
        if one.shape == two.shape or _has_grown(one.shape, two.shape, grown):
            place = tuple(slice(0, n) for n in one.shape)
            parameters.view(two)[place] = parameters.ops.asarray(one.of(vector))
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
    total = sum(slot.size for slot in now)
    of_all = f"{len(taken)} of {len(now)} parameters"
    lines = [f"weights: {n_fitting:,} of {total:,} are the model's ({of_all})"]
    if larger:
        lines.append(f"larger for new classes, whose weights are new: {_names(larger)}")
    fresh = [slot for slot in now if slot not in filled]
    if fresh:
        lines.append(f"new, as nothing fits: {_names(fresh)}")
    unused = [slot for slot in before if slot not in taken]
    if unused:
        lines.append(f"not used: {_names(unused)}")
    return Fit(lines, fresh)


def _distinct(slots: Sequence[Slot]) -> List[Slot]:
    return list({slot.offset: slot for slot in reversed(slots)}.values())[::-1]


def _pairs(before: List[Slot], now: List[Slot]) -> Iterator[Tuple[Slot, Slot]]:
    if [slot.name for slot in before] == [slot.name for slot in now]:
        yield from zip(before, now)
        return
    a, b = ([(slot.name, slot.shape) for slot in slots] for slots in (before, now))
    for match in SequenceMatcher(a=a, b=b, autojunk=False).get_matching_blocks():
        for step in range(match.size):
            yield before[match.a + step], now[match.b + step]


def _has_grown(one: Tuple[int, ...], two: Tuple[int, ...], grown: Tuple[int, int]) -> bool:
    """Whether the shapes differ in one axis, as the numbers of classes do."""
    different = [pair for pair in zip(one, two) if pair[0] != pair[1]]
    return len(one) == len(two) and different == [grown] and grown[0] < grown[1]


def _names(slots: List[Slot]) -> str:
    more = len(slots) - N_NAMED
    return ", ".join(map(str, slots[:N_NAMED])) + (f" and {more} more" if more > 0 else "")
