"""Writes out the defaults of registered functions, so that a config is complete."""

import json
from typing import Any, Dict

import catalogue

from .blocks import is_block, positional_names
from .functions import REQUIRED, describe_function


def fill_functions(data: Dict[str, Any]) -> Dict[str, Any]:
    """A copy in which every block of a registered function has all its arguments, in
    the order of the function's signature. Defaults that JSON cannot hold stay unsaid,
    as do those of unknown functions.

    data (Dict[str, Any]): Nested sections; variables may stand in them.
    """
    filled = {
        key: fill_functions(value) if isinstance(value, dict) else value
        for key, value in data.items()
    }
    return _fill_block(filled) if is_block(filled) else filled


def _fill_block(block: Dict[str, Any]) -> Dict[str, Any]:
    reference = next(key for key in block if key.startswith("@"))
    try:
        info = describe_function(reference[1:], block[reference])
    except (catalogue.RegistryError, AttributeError, ValueError, TypeError):
        return block
    group = block.get("*", {})
    filled = {reference: block[reference]}
    positional = positional_names(info, len(group)) if isinstance(group, dict) else []
    for key, argument in info.arguments.items():
        if key in block:
            filled[key] = block[key]
        elif key not in positional and argument.default is not REQUIRED:
            try:
                filled[key] = json.loads(json.dumps(argument.default, allow_nan=False))
            except (TypeError, ValueError):
                pass
    filled.update({key: value for key, value in block.items() if key not in filled})
    return filled
