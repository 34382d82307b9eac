"""Checks a value against a type annotation, and names annotations for people."""

import collections.abc
from typing import Any, Literal, Union, get_args, get_origin

from confection.typechecker import check_branch, check_type, get_annot_branches

_NAMES = {
    int: "an integer",
    float: "a number",
    str: "a string",
    bool: "true or false",
    type(None): "null",
    list: "a list",
    dict: "a section",
}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, tuple, set)
_SCHEDULES = (collections.abc.Iterator, collections.abc.Generator)
_SECTIONS = (dict, collections.abc.Mapping)


def _check_string(value: str, annotation: Any, handlers: Any, ctx: Any) -> bool:
    # confection takes "3" for an int, and any text for a schedule, and passes it on.
    branches = [
        branch
        for branch in get_annot_branches(annotation)
        if branch not in (int, float)
        and not (isinstance(branch, type) and issubclass(branch, collections.abc.Iterator))
    ]
    return any(check_branch(value, branch, handlers, ctx) for branch in branches)


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value is what an annotation asks for. Nothing is converted, save
    that an int will do for a float."""
    try:
        return check_type(value, annotation, {str: _check_string})
    except TypeError:  # An annotation that isinstance() cannot check.
        return True


def describe(annotation: Any) -> str:
    """An annotation in words: ``Optional[int]`` is "an integer or null"."""
    branches = get_annot_branches(annotation)
    if len(branches) > 1:
        return " or ".join(dict.fromkeys(describe(branch) for branch in branches))
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f'"{part}"' for part in parts)
    if origin in _LISTS:
        return f"a list of {_plural(parts[0])}" if parts else "a list"
    if origin in _SECTIONS:
        return "a section"
    if origin in _SCHEDULES:
        return "a block that builds a schedule"
    if annotation in _NAMES:
        return _NAMES[annotation]
    if origin is collections.abc.Callable:
        return "a function"
    name = getattr(origin or annotation, "__name__", str(annotation))
    return f"a block that builds a {name}"


def _plural(annotation: Any) -> str:
    plurals = {int: "integers", float: "numbers", str: "strings"}
    return plurals.get(annotation, describe(annotation))


def accepts_list(annotation: Any) -> bool:
    """Whether a list may be given, as the blocks of a ``*`` group are."""
    for branch in get_annot_branches(annotation):
        if branch in (Any, list) or get_origin(branch) in _LISTS:
            return True
    return False


def element_type(annotation: Any) -> Any:
    """What the elements of a list, or the values of a dict, shall be."""
    found = []
    for branch in get_annot_branches(annotation):
        origin, parts = get_origin(branch), get_args(branch)
        if origin in _LISTS and parts:
            found.append(parts[0])
        elif origin in _SECTIONS and len(parts) == 2:
            found.append(parts[1])
    return Union[tuple(found)] if found else Any
