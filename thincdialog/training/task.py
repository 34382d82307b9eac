"""The task of a config, and its splits."""

from typing import Any, Dict

from ..config import CheckedConfig
from ..errors import DataError
from ..teachers import Teacher


def split_of(checked: CheckedConfig, parts: Dict[str, Any], split: str, **settings: Any) -> Teacher:
    """The teacher of one split of the config's task. Reads no data.

    checked (CheckedConfig): The config that ``parts`` were built from.
    parts (Dict[str, Any]): From ``resolve_config``.
    split (str): "train", "dev" or "test".
    **settings (Any): As for ``Teacher.for_split``.
    RAISES (DataError): If the config gives no data for the split.
    """
    name, task = next(iter(parts["tasks"].items()))
    if split not in task.splits:
        known = ", ".join(task.splits) or "none"
        paths = checked.interpolated["paths"]
        remedy = f"Give it with --paths.{split} FILE" if split in paths else "Set it there"
        text = f"has no {split} data (it has: {known}). {remedy}."
        raise DataError(f"[tasks.{name}]", text)
    return task.for_split(split, **settings)
