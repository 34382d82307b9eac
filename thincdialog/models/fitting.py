"""Initialisation of a model with the matching weights of a saved model."""

from difflib import SequenceMatcher
from pathlib import Path
from typing import Iterator, List, NamedTuple, Sequence, Tuple

from ..errors import ModelError
from ..files.array_file import n_numbers
from ..files.json_file import read_json
from ..files.saved_model import read_meta
from .parameters import FlatParameters, Slot
from .weights_file import WEIGHTS, read_slots, read_vector

# The number of names that a line lists at most.
N_NAMED = 4


class Fit(NamedTuple):
    """Describe how a saved model fits into another one.

    lines (List[str]): Description of what fits and what does not, one line each.
    fresh (List[Slot]): Parameters of the new model that no saved parameter fits.
    """

    lines: List[str]
    fresh: List[Slot]


def check_fitting(folder: Path, agent: str) -> None:
    """Check that a saved model has weights that another agent can start from.

    agent (str): Name of the other agent.
    RAISES (ModelError): If the saved model has no such weights, for example one of a custom agent.
    """
    if not (folder / "layout.json").is_file():
        there = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_file()))
        other = read_meta(folder).get("agent")
        raise ModelError(
            f"{folder}  has no weights that {agent} can start from: {other} saved it "
            f"without layout.json (found: {there}). Start from a model of {agent}, or of an "
            "agent with [agent.model]."
        )


def saved_shapes(folder: Path) -> List[Tuple[int, ...]]:
    """Return the shapes of a saved model's parameters.

    RAISES (ModelError): If layout.json is missing or damaged.
    """
    return [slot.shape for slot in read_slots(folder, n_numbers(folder / WEIGHTS))]


def fit_weights(folder: Path, parameters: FlatParameters, grown: Tuple[int, int]) -> Fit:
    """Copy all weights of a saved model that fit into this one, and leave the others as they are.

    Parameters are matched by position if both models have the same layers, otherwise by name and
    shape, in the order of the layers.

    folder (Path): Folder of the saved model.
    parameters (FlatParameters): Parameters of this model.
    grown (Tuple[int, int]): Number of classes of the saved model and of this one. The saved
        model's classes come first.
    RETURNS (Fit): What fits and what does not.
    RAISES (ModelError): If the saved model is damaged, or none of its parameters fit.
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
    lines = [f"weights: {n_fitting:,} of {total:,} come from the saved model ({of_all})"]
    if larger:
        lines.append(f"extended by new classes, which have initial weights: {_names(larger)}")
    fresh = [slot for slot in now if slot not in filled]
    if fresh:
        lines.append(f"initialised, because no saved parameter fits: {_names(fresh)}")
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
    """Return whether the shapes differ in one axis only, by the two numbers of classes."""
    different = [pair for pair in zip(one, two) if pair[0] != pair[1]]
    return len(one) == len(two) and different == [grown] and grown[0] < grown[1]


def _names(slots: List[Slot]) -> str:
    more = len(slots) - N_NAMED
    return ", ".join(map(str, slots[:N_NAMED])) + (f" and {more} more" if more > 0 else "")
