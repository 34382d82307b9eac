"""Detect splits that have the same examples, because they are read from the same file."""

from os.path import realpath
from typing import Any, Tuple

from ..messages import Message
from ..teachers import Teacher

_REASONS = {
    "train": "scores on it measure memorisation",
    "dev": "the best model is chosen by it, so scores on it are too good",
}


def shared_file(task: Teacher, split: str) -> str:
    """Check whether a split is read from a file of an earlier split.

    Different parts of one file are allowed: a part that is held out, or splits that are named in
    the file itself.

    task (Teacher): The teacher of one task.
    split (str): Name of the split.
    RETURNS (str): A warning for the user if the split shares a file; otherwise "".
    """
    known = {realpath(path): path for path in task.data[split].data_files()}
    for earlier, reason in _REASONS.items():
        if earlier == split:
            break
        if earlier not in task.splits or (task.data[earlier].about() and task.data[split].about()):
            continue
        common = known.keys() & {realpath(path) for path in task.data[earlier].data_files()}
        if common and _first(task, earlier) == _first(task, split):
            return f"{known[min(common)]} is the {earlier} data, too: {reason}"
    return ""


def _first(task: Teacher, split: str) -> Tuple[Any, ...]:
    """Return the id and the text of the first example of a split."""
    first: Message = next(task.for_split(split).examples(), Message())
    return first.get("id"), first.get("text")
