"""Values of a config: JSON, or else a plain string, as confection reads them."""

import json
import math
import re
from contextlib import suppress
from typing import Any, Iterator, List, Optional, Tuple, Union

# Names of the sections around a key, from the outermost on, and the key.
KeyPath = Tuple[str, ...]

# Deepest nesting of sections and of lists in a value. Deeper ones are no configs, and
# would exhaust Python's stack.
MAX_DEPTH = 50

# Largest whole number, that of 64 bits.
MAX_NUMBER = 2**63 - 1

_LITERALS = {"True": True, "False": False, "None": None}
# Longest name for which similar ones are looked for.
MAX_COMPARED = 200
_TOO_DEEP = f"it is nested more than {MAX_DEPTH} deep"
_COMMENT = re.compile(r"\s[#;]")
# A string, or the rest of the text if it is not closed: never searched twice.
_STRING = re.compile(r'"(?:\\.|[^"\\])*(?:"|\\?$)', re.DOTALL)
_VARIABLE = re.compile(r"\$\{[^}$]*\}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def has_variable(text: str) -> bool:
    """Whether a text refers to a variable, as in ``${paths.train}``."""
    return _VARIABLE.search(text) is not None


def parse_value(raw: str) -> Any:
    """The value that a text stands for. A string with variables stays as written, quotes too."""
    try:
        value = _load(raw)
    except ValueError:
        return _LITERALS.get(raw, raw)
    return raw if isinstance(value, str) and has_variable(raw) else value


def _load(raw: str) -> Any:
    try:
        value = json.loads(raw)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    depth, level = 0, [value]
    while level := [part for part in level if isinstance(part, (dict, list))]:
        depth += 1
        if depth > MAX_DEPTH + 1:
            raise ValueError(_TOO_DEEP)
        level = [inner for part in level for inner in _children(part)]
    return value


def _children(value: Any) -> List[Any]:
    parts = value.values() if isinstance(value, dict) else value
    return list(parts) if isinstance(value, (dict, list)) else []


def parts_of(value: Any) -> Iterator[Any]:
    """A value and, in order, everything that is in its lists and sections."""
    rest = [value]
    while rest:
        part = rest.pop()
        yield part
        rest.extend(reversed(_children(part)))


def around(path: KeyPath) -> Iterator[KeyPath]:
    """A path and those of all sections around it."""
    return (path[:end] for end in range(len(path) + 1))


def dump_value(value: Any) -> str:
    """The text of a value; the inverse of ``parse_value``."""
    if isinstance(value, str) and has_variable(value) and parse_value(value) == value:
        lines = value.split("\n")
        if all(line and line == line.strip() and line[0] not in "#;" for line in lines):
            return "\n    ".join(lines)
    return json.dumps(value, ensure_ascii=False)


def read_override(value: Any) -> Any:
    """The value of an override: JSON if it can be read as such, else the text itself.
    Dollar signs that are no variables are kept."""
    if not isinstance(value, str) or has_variable(value):
        return value
    value = parse_value(value)
    return value.replace("$", "$$") if isinstance(value, str) else value


def find_value_mistake(raw: str) -> Optional[Tuple[str, str]]:
    """What is wrong with a value that JSON cannot read, and that is surely no plain string.

    RETURNS (Optional[Tuple[str, str]]): What is wrong, and what to do; None if nothing.
    """
    if not raw:
        return "has no value", 'write null for nothing, "" for an empty string'
    try:
        return find_unfit(_load(raw))
    except ValueError as error:
        reason = str(error)
    shown = f"is {shorten(raw)}"
    if _COMMENT.search(_STRING.sub('""', raw)):
        return shown, "a comment needs a line of its own, above the key"
    if len(raw) > 1 and raw[0] == raw[-1] == "'":
        return shown, "strings are written with double quotes"
    if raw[0] in '[{"':
        return None if has_variable(raw) else (f"{shown}, which is not JSON", reason)
    if "\n" in raw:
        return shown, "an indented line continues the value above it: indent it less"
    number = read_number(raw)
    if number is None:
        return None
    hint = json.dumps(number) if abs(number) < math.inf else "a finite number"
    return f"{shown}, which is not a number in JSON", f"write {hint}"


def find_unfit(value: Any) -> Optional[Tuple[str, str]]:
    """The same for a value that JSON can read, and that no setting can use."""
    for part in parts_of(value):
        if isinstance(part, float) and not abs(part) < math.inf:
            return f"is {part}", "write a finite number"
        if isinstance(part, int) and abs(part) > MAX_NUMBER:
            return f"is {shorten(str(part))}", f"write a number of at most {MAX_NUMBER:,}"
        if isinstance(part, str) and _SURROGATE.search(part):
            return "holds half of a character (a lone surrogate)", "correct or remove it"
        if isinstance(part, str) and "\0" in part:
            return "holds a NUL character", "remove it"
    return None


def read_number(text: str) -> Union[int, float, None]:
    """The number that Python reads in a text, an infinite one or nan too; JSON allows less."""
    for convert in (int, float):
        with suppress(ValueError):
            return convert(text)
    return None


def shorten(text: str, limit: int = 60) -> str:
    """A text for a message: on one line, and cut."""
    text = " ".join(text[: 4 * limit].split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def show_value(value: Any) -> str:
    """A value for a message: as JSON, shortened."""
    try:
        return shorten(json.dumps(value, ensure_ascii=False))
    except TypeError:
        return f"a {type(value).__name__}"
