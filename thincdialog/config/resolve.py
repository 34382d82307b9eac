"""Builds everything that a checked config describes."""

from functools import reduce
from typing import Any, Dict

from ..errors import ConfigError
from .build import Builder
from .load import CheckedConfig


def resolve_config(checked: CheckedConfig) -> Dict[str, Any]:
    """Build the objects of all sections. No data is read.

    checked (CheckedConfig): From ``load_config``.
    RETURNS (Dict[str, Any]): ``paths`` and ``system`` (dicts); ``tasks`` (name to
        teacher); ``tokenizer`` (None if the config has none); ``agent``; ``world`` (a
        function of teacher and agent); ``mixture`` (its settings); ``evaluation`` (its
        settings, ``world``, that of the whole config if it has none of its own, and
        ``metrics``, a list); ``training`` (its settings, ``optimizer``, ``logger``, and
        ``callbacks``, a list); ``baselines`` (name to agent).
    RAISES (ConfigError): If a registered function refuses its arguments.
    """
    builder = Builder(checked.reading)
    sections = builder.build_section((), checked.interpolated)
    if builder.problems:
        cause = builder.causes[0] if builder.causes else None
        raise ConfigError(builder.problems, checked.name) from cause
    sections.setdefault("tokenizer", None)
    sections.setdefault("baselines", {})
    evaluation, training = sections["evaluation"], sections["training"]
    evaluation["world"] = evaluation.get("world") or sections["world"]
    evaluation["metrics"] = list(evaluation["metrics"].values())
    training["callbacks"] = list(training.get("callbacks", {}).values())
    return sections


def build_block(checked: CheckedConfig, name: str) -> Any:
    """Build one block once more: a new object, equal to the one of ``resolve_config``.

    name (str): Dotted, such as "training.optimizer".
    """
    path = tuple(name.split("."))
    block: Any = reduce(dict.__getitem__, path, checked.interpolated)
    return Builder(checked.reading).build_value(path, block)
