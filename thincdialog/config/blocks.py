"""Blocks of a config: sections with the name of the registered function that builds them."""

import json
from contextlib import suppress
from typing import Any, Dict, Optional

import catalogue

from ..errors import DialogError
from .functions import REQUIRED, FunctionInfo, describe_function


def reference_of(section: Dict[str, Any]) -> Optional[str]:
    """Return the key that names the registered function, ``@agents``; None if there is none."""
    return next((key for key in section if key.startswith("@")), None)


def is_block(value: Any) -> bool:
    """Return whether a section names the registered function that builds it."""
    return isinstance(value, dict) and reference_of(value) is not None


def is_group(value: Any) -> bool:
    """Return whether a section is a list of blocks, such as ``[a.*.first]``, ``[a.*.second]``."""
    return isinstance(value, dict) and list(value) == ["*"] and isinstance(value["*"], dict)


def function_of(section: Dict[str, Any]) -> Optional[FunctionInfo]:
    """Return the function that builds a block; None if the block names no function or an unknown
    one."""
    reference = reference_of(section)
    try:
        return describe_function(reference[1:], section[reference]) if reference else None
    except (catalogue.RegistryError, DialogError, AttributeError, ValueError, TypeError):
        return None  # The config check reports the mistake.


def fill_functions(data: Dict[str, Any]) -> Dict[str, Any]:
    """Return a copy of a config in which every block has all arguments of its registered function,
    in their order. Defaults that JSON cannot hold are left out, as are defaults of unknown
    functions.

    data (Dict[str, Any]): Nested sections, which may contain variables.
    """
    given = {
        key: fill_functions(value) if isinstance(value, dict) else value
        for key, value in data.items()
    }
    info = function_of(given)
    if info is None:
        return given
    reference = f"@{info.registry}"
    filled = {reference: given[reference]}
    positional = [argument.name for argument in info.positional(given.get("*"))]
    for key, argument in info.arguments.items():
        if key in given:
            filled[key] = given[key]
        elif key not in positional and argument.default is not REQUIRED:
            with suppress(TypeError, ValueError):
                filled[key] = json.loads(json.dumps(argument.default, allow_nan=False))
    return {**filled, **given}
