"""The tasks of a config, and their splits."""

from typing import Any, Dict, List

from ..config import CheckedConfig
from ..errors import DataError
from ..teachers import MultiTask, Teacher, mix_tasks


def tasks_of(checked: CheckedConfig, parts: Dict[str, Any], split: str) -> Dict[str, Teacher]:
    """The config's tasks that have a split, by name. Reads no data.

    checked (CheckedConfig): The config that ``parts`` were built from.
    parts (Dict[str, Any]): From ``resolve_config``.
    split (str): "train", "dev" or "test".
    RAISES (DataError): If there is none.
    """
    tasks: Dict[str, Teacher] = parts["tasks"]
    found = {name: task for name, task in tasks.items() if split in task.splits}
    if found:
        return found
    known = {name: ", ".join(task.splits) or "none" for name, task in tasks.items()}
    paths = checked.interpolated["paths"]
    remedy = f"Give it with --paths.{split} FILE" if split in paths else "Set it there"
    if len(known) == 1:
        ((name, splits),) = known.items()
        raise DataError(f"[tasks.{name}]", f"has no {split} data (it has: {splits}). {remedy}.")
    each = "; ".join(f"{name} has: {splits}" for name, splits in known.items())
    raise DataError("[tasks]", f"none of them has {split} data ({each}). {remedy}.")


def without_training_data(parts: Dict[str, Any]) -> List[str]:
    """The tasks that ``[mixture.weights]`` gives a weight, and that have nothing to weigh.

    parts (Dict[str, Any]): From ``resolve_config``.
    """
    weights = parts["mixture"]["weights"] or {}
    return [
        name
        for name, task in parts["tasks"].items()
        if weights.get(name) and "train" not in task.splits
    ]


def split_of(
    checked: CheckedConfig,
    parts: Dict[str, Any],
    split: str,
    *,
    whole: bool = False,
    **settings: Any,
) -> Teacher:
    """One teacher of a split: the only task's, or the mixture of the tasks that have the
    split. The training split is mixed as ``[mixture]`` says, others by their sizes.

    checked (CheckedConfig): The config that ``parts`` were built from.
    parts (Dict[str, Any]): From ``resolve_config``.
    split (str): "train", "dev" or "test".
    whole (bool): Mix the training split by sizes, too, so that no task is left out.
    **settings (Any): As for ``Teacher.for_split``, for each task.
    RAISES (DataError): If the config gives no data for the split, or every task that has
        some weighs nothing.
    """
    tasks = tasks_of(checked, parts, split)
    if len(parts["tasks"]) == 1:
        ((_, task),) = tasks.items()
        return task.for_split(split, **settings)
    mixture = dict(parts["mixture"]) if split == "train" and not whole else {}
    if mixture.get("weights") is not None:
        weights = mixture["weights"]
        mixture["weights"] = weights = {name: weights[name] for name in tasks}
        if not any(weights.values()):
            text = f"are 0 for all tasks that have training data ({', '.join(tasks)})"
            raise DataError("[mixture.weights]", text)
    shown = {name: task.for_split(split, **settings) for name, task in tasks.items()}
    # One that is left of several keeps its name.
    return mix_tasks(shown, **mixture) if len(shown) > 1 else MultiTask(shown)


def by_task(teacher: Teacher) -> Dict[str, Teacher]:
    """The teachers of a mixture by the names of their tasks; {"": teacher} of one task."""
    return dict(teacher.tasks) if isinstance(teacher, MultiTask) else {"": teacher}
