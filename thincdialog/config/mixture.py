"""Check the settings of configs with several tasks."""

import math
from typing import TYPE_CHECKING, List

from ..errors import closest
from .annotations import fits
from .schemas import WEIGHTS
from .suggestions import close_to, value_hint
from .values import KeyPath, show_value

if TYPE_CHECKING:
    from .check import Checker

PATH: KeyPath = tuple(WEIGHTS.split("."))
# Names that reports and tables use, and their meaning there.
TAKEN = {"macro": "the mean over tasks", "all": "all examples together"}


def check_task_names(checker: "Checker") -> None:
    """Check that there is a task, and that no task has a name that reports use."""
    tasks = checker.data.get("tasks")
    if not isinstance(tasks, dict):
        return
    if not tasks:
        text = "at least one section [tasks.NAME] is needed, got none"
        checker.add(("tasks",), text, 'it begins with: @teachers = "..."')
    for name, meaning in TAKEN.items():
        if name in tasks and len(tasks) > 1:
            text = f"has the name that reports use for {meaning}"
            checker.add_in(("tasks", name), text, "choose another one")


def check_weights(checker: "Checker") -> None:
    """Check that ``[mixture.weights]``, if given, has a valid number for each task."""
    mixture, tasks = checker.data.get("mixture"), checker.data.get("tasks")
    weights = mixture.get("weights") if isinstance(mixture, dict) else None
    if not isinstance(weights, dict) or not isinstance(tasks, dict):
        return
    names = [name for name in tasks if name != "*"]
    # A misspelt name is not also reported as missing.
    misspelt: List[str] = []
    for name, weight in weights.items():
        if name not in names:
            missing = [known for known in names if known not in weights]
            hint = close_to(name, missing or names).replace("it has", "found")
            misspelt.append(closest(name, missing))
            checker.add_in(PATH, f"there is no task '{name}'", hint, name)
        elif not (is_number := fits(weight, float)) or not 0 <= weight < math.inf:
            text = f"should be a number, 0 or more, got {show_value(weight)}"
            checker.add_at((*PATH, name), text, "" if is_number else value_hint(weight, float))
    for name in names:
        if name not in weights and name not in misspelt:
            hint = f"add: {name} = 1; 0 leaves the task out"
            checker.add_in(PATH, f"has no weight for the task '{name}'", hint)
    if checker.is_sound(PATH) and not any(weights.values()):
        checker.add_in(PATH, "are all 0", "set one above 0, or no example is used")
