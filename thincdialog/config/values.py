"""Values of a config, which are JSON or plain strings, as in confection."""

import json
import math
import re
from contextlib import suppress
from typing import Any, Iterator, Optional, Tuple, Union

from ..files.json_text import parse_json

# A path in a config: the names of the sections around a key, outermost first, and the key.
KeyPath = Tuple[str, ...]

# Maximum nesting of sections, and of lists in a value. Real configs are never deeper, and deeper
# nesting would exhaust Python's stack.
MAX_DEPTH = 50

# Largest 64-bit integer.
MAX_NUMBER = 2**63 - 1

_LITERALS = {"True": True, "False": False, "None": None}
_COMMENT = re.compile(r"\s[#;]")
# A string, or the rest of the text if the string is not closed, so that no text is searched twice.
_STRING = re.compile(r'"(?:\\.|[^"\\])*(?:"|\\?$)', re.DOTALL)
_VARIABLE = re.compile(r"\$\{[^}$]*\}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def has_variable(text: str) -> bool:
    """Return whether a text refers to a variable, as in ``${paths.train}``."""
    return _VARIABLE.search(text) is not None


def parse_value(raw: str) -> Any:
    """Parse the text of a value. A string with variables stays as written, including quotes."""
    try:
        value = parse_json(raw, MAX_DEPTH)
    except ValueError:
        return _LITERALS.get(raw, raw)
    return raw if isinstance(value, str) and has_variable(raw) else value


def parts_of(value: Any) -> Iterator[Any]:
    """Yield a value and, in order, all values in its lists and sections."""
    rest = [value]
    while rest:
        part = rest.pop()
        yield part
        if isinstance(part, (dict, list)):
            rest.extend(reversed(part.values() if isinstance(part, dict) else part))


def around(path: KeyPath) -> Iterator[KeyPath]:
    """Yield the paths of all sections around a key, outermost first, and its own path."""
    return (path[:end] for end in range(len(path) + 1))


def dump_value(value: Any) -> str:
    """Return the text of a value; the inverse of ``parse_value``."""
    if isinstance(value, str) and has_variable(value) and parse_value(value) == value:
        lines = value.split("\n")
        if all(line and line == line.strip() and line[0] not in "#;" for line in lines):
            return "\n    ".join(lines)
    return json.dumps(value, ensure_ascii=False)


def read_override(value: Any) -> Any:
    """Parse the value of an override as JSON if possible, else return the text itself. Dollar signs
    that do not begin a variable are kept."""
    if not isinstance(value, str) or has_variable(value):
        return value
    value = parse_value(value)
    return value.replace("$", "$$") if isinstance(value, str) else value


def find_value_mistake(raw: str) -> Optional[Tuple[str, str]]:
    """Find the mistake in a value that JSON cannot read and that is clearly not a plain string.

    RETURNS (Optional[Tuple[str, str]]): The mistake and a hint; None if there is no mistake.
    """
    if not raw:
        return "has no value", 'write null for nothing, "" for an empty string'
    try:
        return find_unfit(parse_json(raw, MAX_DEPTH))
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
    """Find the mistake in a value that JSON can read but no setting can use; see
    ``find_value_mistake``."""
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
    """Parse a number as Python does, including infinity and nan, which JSON does not allow."""
    for convert in (int, float):
        with suppress(ValueError):
            return convert(text)
    return None


def shorten(text: str, limit: int = 60) -> str:
    """Put a text on one line and shorten it, for a message."""
    text = " ".join(text[: 4 * limit].split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def show_value(value: Any) -> str:
    """Format a value for a message: as JSON, shortened."""
    try:
        return shorten(json.dumps(value, ensure_ascii=False))
    except TypeError:
        return f"a {type(value).__name__}"
