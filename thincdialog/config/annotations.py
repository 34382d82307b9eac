"""Check values against type annotations, and describe annotations in words."""

import collections.abc
from types import GeneratorType
from typing import Any, Callable, Dict, List, Literal, Union, get_args, get_origin

from confection.typechecker import check_branch, check_type, get_annot_branches

# JSON has none of these types, so configs use a list instead.
_FROM_LISTS = (tuple, set, frozenset)
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, *_FROM_LISTS)
_SECTIONS = (dict, collections.abc.Mapping)
_SCHEDULES = (collections.abc.Iterator, collections.abc.Generator)
_NAMES: Dict[Any, str] = {
    int: "an integer",
    float: "a number",
    str: "a string",
    bool: "true or false",
    type(None): "null",
    collections.abc.Callable: "a function",
    **dict.fromkeys((list, *_FROM_LISTS), "a list"),
    **dict.fromkeys(_SECTIONS, "a section"),
    **dict.fromkeys(_SCHEDULES, "a block that builds a schedule"),
}
_PLURALS = {int: "integers", float: "numbers", str: "strings"}


def _check_string(value: str, annotation: Any, handlers: Any, ctx: Any) -> bool:
    # confection accepts the string "3" for an int, and any string for a schedule, without
    # converting it.
    branches = [
        branch
        for branch in get_annot_branches(annotation)
        if branch not in (int, float)
        and not (isinstance(branch, type) and issubclass(branch, collections.abc.Iterator))
    ]
    return any(check_branch(value, branch, handlers, ctx) for branch in branches)


def _check_list(value: List, annotation: Any, handlers: Any, ctx: Any) -> bool:
    return any(
        check_branch(_as_kind(value, branch), branch, handlers, ctx)
        for branch in get_annot_branches(annotation)
    )


def _as_kind(value: List, branch: Any) -> Any:
    kind = get_origin(branch) or branch
    try:
        return kind(value) if kind in _FROM_LISTS else value
    except TypeError:  # Its elements are not hashable.
        return value


# confection would read a schedule to its end, but schedules are infinite.
_HANDLERS: Dict[type, Callable[..., bool]] = {
    str: _check_string,
    list: _check_list,
    GeneratorType: lambda *given: True,
}


def fits(value: Any, annotation: Any) -> bool:
    """Return whether a value fits an annotation. Nothing is converted, except that
    an int fits float, and a list fits a tuple or a set."""
    try:
        return check_type(value, annotation, _HANDLERS)
    except TypeError:  # An annotation that isinstance() cannot check.
        return True


def as_annotated(value: Any, annotation: Any) -> Any:
    """Convert lists in a value to the tuples and sets of its annotation, if the value fits."""
    if not isinstance(value, (list, dict)):
        return value
    branches = [b for b in get_annot_branches(annotation) if get_args(b) or b in _FROM_LISTS]
    branch = next((b for b in branches if fits(value, b)), None)
    parts = get_args(branch)
    if branch is None:
        return value
    if isinstance(value, dict):
        return {k: as_annotated(v, parts[-1]) for k, v in value.items()} if parts else value
    if get_origin(branch) is tuple and parts[-1:] != (...,):
        return tuple(map(as_annotated, value, parts))
    return _as_kind([as_annotated(v, parts[0]) for v in value] if parts else value, branch)


def takes_nothing(annotation: Any) -> bool:
    """Return whether an annotation is one of confection's that no value fits."""
    return getattr(annotation, "__module__", "") == "confection.validation"


def describe(annotation: Any) -> str:
    """Describe an annotation in words: ``Optional[int]`` is "an integer or null"."""
    branches = get_annot_branches(annotation)
    if len(branches) > 1:
        return " or ".join(dict.fromkeys(describe(branch) for branch in branches))
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f'"{part}"' for part in parts)
    plural = (_PLURALS.get(parts[0]) or describe(parts[0])) if origin in _LISTS and parts else ""
    if origin is tuple and parts and parts[-1] is not ...:
        if len(set(parts)) == 1:
            return f"a list of {len(parts)} {plural}"
        return f"a list of {len(parts)}: {', '.join(map(describe, parts))}"
    if origin in _LISTS:
        return f"a list of {plural}" if parts else "a list"
    if annotation in _NAMES or origin in _NAMES:
        return _NAMES.get(annotation) or _NAMES[origin]
    name = getattr(origin or annotation, "__name__", str(annotation))
    if takes_nothing(annotation):
        return f"confection's {name}"
    return f"a block that builds a {name}"


def accepts_list(annotation: Any) -> bool:
    """Return whether an annotation accepts a list, such as the blocks of a ``*`` group."""
    branches = get_annot_branches(annotation)
    return any(b in (Any, list, *_FROM_LISTS) or get_origin(b) in _LISTS for b in branches)


def element_type(annotation: Any) -> Any:
    """Return the annotation of the elements of a list, or of the values of a dict."""
    found = []
    for branch in get_annot_branches(annotation):
        origin, parts = get_origin(branch), get_args(branch)
        if origin in _LISTS and parts:
            found.append(parts[0])
        elif origin in _SECTIONS and len(parts) == 2:
            found.append(parts[1])
    return Union[tuple(found)] if found else Any
