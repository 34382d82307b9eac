"""Checks the arguments that a block gives to its registered function."""

from typing import TYPE_CHECKING, Any, Dict, List, Set

from .annotations import accepts_list, describe, element_type, fits, takes_nothing
from .functions import REQUIRED, FunctionInfo
from .ranges import out_of_range
from .suggestions import close_to, value_hint
from .values import show_value
from .variables import Path

if TYPE_CHECKING:
    from .check import Checker


def is_block(value: Any) -> bool:
    """Whether a section names the registered function that builds it."""
    return isinstance(value, dict) and any(key.startswith("@") for key in value)


def is_group(value: Any) -> bool:
    """Whether a section is a list of blocks, ``[a.*.first]``, ``[a.*.second]``."""
    return isinstance(value, dict) and list(value) == ["*"] and isinstance(value["*"], dict)


def positional_names(info: FunctionInfo, n_given: int) -> List[str]:
    """Names of the arguments that the first blocks of a ``*`` group fill."""
    names = [argument.name for argument in info.arguments.values() if argument.is_positional]
    return names[:n_given]


def check_arguments(
    checker: "Checker", path: Path, block: Dict[str, Any], info: FunctionInfo
) -> None:
    """Unknown, missing and wrong arguments of one block, and all blocks in it."""
    name = ".".join(path)
    group = block.get("*", {})
    filled = positional_names(info, len(group)) if isinstance(group, dict) else []
    misspelt: Set[str] = set()
    for key, value in block.items():
        inner = (*path, key)
        if key.startswith("@"):
            continue
        if key == "*":
            _check_group(checker, inner, value, info)
        elif key in info.arguments:
            if key in filled:
                text = f"[{name}] '{key}' is filled by the first blocks of [{name}.*] already"
                checker.add(inner, text, info.hint(key))
            _check_value(checker, inner, value, info.arguments[key].annotation, info)
            if checker.is_sound(inner) and (wanted := out_of_range(info, key, value)):
                text = f"[{name}] '{key}' of {info.name} should be {wanted}"
                checker.add(inner, f"{text}, got {show_value(value)}", info.hint(key))
        elif not info.takes_any:
            hint = close_to(key, info.arguments) or f"it takes no arguments, see {info.where}"
            misspelt.update(name for name in info.arguments if f"'{name}'?" in hint)
            if info.keywords and "?" not in hint:
                # It would take a misspelt name, too.
                hint = f"name it beside **{info.keywords} ({info.where}): a config gives only names"
            checker.add(inner, f"[{name}] {info.name} has no argument '{key}'", hint)
    for key, argument in info.arguments.items():
        is_given = key in block or key in filled or key in misspelt
        if argument.default is REQUIRED and not is_given:
            text = f"[{name}] '{key}' of {info.name} is missing"
            checker.add(path, text, info.hint(key))


def _check_group(checker: "Checker", path: Path, value: Any, info: FunctionInfo) -> None:
    name = ".".join(path[:-1])
    if not isinstance(value, dict):
        checker.add(path, f"[{name}] '*' should hold sections [{name}.*.NAME]")
        return
    names = positional_names(info, len(value))
    if len(value) > len(names) and info.variadic is None:
        text = f"[{name}] {info.name} takes {len(names)} positional blocks, got {len(value)}"
        checker.add(path, text, f"see {info.where}")
    for index, (key, element) in enumerate(value.items()):
        is_named = index < len(names)
        annotation = info.arguments[names[index]].annotation if is_named else info.variadic
        _check_value(checker, (*path, key), element, annotation, info)


def _check_value(
    checker: "Checker", path: Path, value: Any, annotation: Any, info: FunctionInfo
) -> None:
    if path in checker.unresolved:
        return
    if is_block(value):
        checker.check_block(path, value)
    elif is_group(value):
        if not accepts_list(annotation):
            _add_mismatch(checker, path, f"a list [{'.'.join(path)}.*]", annotation, info)
        for key, element in value["*"].items():
            _check_value(checker, (*path, "*", key), element, element_type(annotation), info)
    elif _holds_blocks(value):
        # The parts are checked alone: what they will be is not known yet.
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, element in items:
            _check_value(checker, (*path, str(key)), element, element_type(annotation), info)
    elif not checker.is_unknown(path) and not fits(value, annotation):
        _add_mismatch(checker, path, show_value(value), annotation, info, value)


def _holds_blocks(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)):
        return False
    return any(is_block(part) or is_group(part) or _holds_blocks(part) for part in parts)


def _add_mismatch(
    checker: "Checker",
    path: Path,
    shown: str,
    annotation: Any,
    info: FunctionInfo,
    value: Any = None,
) -> None:
    section, key = ".".join(path[:-1]), path[-1]
    text = f"[{section}] '{key}' of {info.name} should be {describe(annotation)}, got {shown}"
    hint = value_hint(value, annotation) or info.hint(key)
    if takes_nothing(annotation):
        hint = f"no value is one: annotate int, float or bool there ({info.where})"
    checker.add(path, text, hint)
