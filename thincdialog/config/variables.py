"""Fills in ``${section.key}`` and ``${section}``, as confection does.

``${a.b}`` alone keeps the type of what it refers to; inside a longer text it becomes
part of a string. ``$$`` stands for a dollar sign. ``${key}`` without a dot is a key of
the same section, else a whole section. Works on nested dicts and goes on after a
mistake, so that all of them can be shown at once.
"""

import difflib
import json
import re
from copy import deepcopy
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

from ..errors import MAX_LISTED
from .values import MAX_COMPARED, parse_value

_TOKEN = re.compile(r"\$\$|\$\{(?P<name>[^}$]+)\}|\$")
Path = Tuple[str, ...]

# Most variables that lead to one another, sections around them included, and most
# characters and values that variables may be replaced by: enough for any config, and
# too few to exhaust the stack or the memory.
MAX_LINKS = 100
MAX_FILLED = 4_000_000
_OF_A_PART = 20  # What a value counts beside its letters.


class VariableMistake(NamedTuple):
    """A value whose variables cannot be filled in.

    path (Tuple[str, ...]): Section parts and key of the value.
    """

    path: Path
    text: str
    hint: str


class _Unresolved(Exception):
    pass


def fill_variables(data: Dict[str, Any]) -> Tuple[Dict[str, Any], List[VariableMistake], Set[Path]]:
    """Replace all variables by what they refer to.

    data (Dict[str, Any]): Nested sections; strings as ``parse_value`` leaves them.
    RETURNS (Tuple[Dict[str, Any], List[VariableMistake], Set[Path]]): A new dict;
        the mistakes; the paths of all values that could not be filled in because of
        them (None in the new dict).
    """
    filler = _Filler(data)
    return filler.fill_section((), data), filler.mistakes, filler.unresolved


def variables_in(data: Any) -> Iterator[str]:
    """Dotted names of all variables in a value or section."""
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list):
        for value in data:
            yield from variables_in(value)
    elif isinstance(data, str):
        for match in _TOKEN.finditer(data):
            if match["name"]:
                yield match["name"].replace(":", ".")


class _Filler:
    def __init__(self, data: Dict[str, Any]):
        self.data = data
        self.mistakes: List[VariableMistake] = []
        self.unresolved: Set[Path] = set()
        self.filled: Dict[Path, Any] = {}
        self.in_progress: List[Path] = []
        self.n_filled = 0

    def fill_section(self, path: Path, section: Dict[str, Any]) -> Dict[str, Any]:
        return {key: self.fill_at((*path, key), value) for key, value in section.items()}

    def fill_at(self, path: Path, value: Any) -> Any:
        if path in self.filled:
            return self.filled[path]
        if path in self.unresolved:
            return None
        self.in_progress.append(path)
        try:
            if isinstance(value, dict):
                result: Any = self.fill_section(path, value)
            else:
                result = self._fill_value(path, value)
            self.filled[path] = result
            return result
        except _Unresolved:
            self.unresolved.add(path)
            return None
        finally:
            self.in_progress.pop()

    def _fill_value(self, path: Path, value: Any) -> Any:
        if isinstance(value, str):
            raw = value
        elif isinstance(value, list) and "$" in (text := json.dumps(value, ensure_ascii=False)):
            raw = text
        else:
            return value
        if "$" not in raw:
            return value
        pieces = self._split(path, raw)
        if len(pieces) == 1 and isinstance(pieces[0], _Reference):
            return deepcopy(self._look_up(path, pieces[0].name))
        quoted = raw[0] in '"[{'
        texts = [
            self._as_text(path, piece, quoted) if isinstance(piece, _Reference) else piece
            for piece in pieces
        ]
        text = "".join(texts)
        # Only what was written as JSON is read as JSON again: a plain string whose
        # dollar signs were doubled stays a string.
        return parse_value(text) if len(texts) > 1 or isinstance(value, list) else text

    def _split(self, path: Path, raw: str) -> List[Any]:
        """Literal texts and references, in order."""
        pieces: List[Any] = []
        end = 0
        for match in _TOKEN.finditer(raw):
            literal = raw[end : match.start()]
            end = match.end()
            if match["name"]:
                pieces.extend([literal] if literal else [])
                pieces.append(_Reference(match["name"].strip().replace(":", ".")))
            elif match.group() == "$$":
                pieces.append(literal + "$")
            else:
                text = "holds a lone '$'"
                self._fail(path, text, "write $$ for a dollar sign, ${section.key} for a variable")
        if end < len(raw):
            pieces.append(raw[end:])
        if not any(isinstance(piece, _Reference) for piece in pieces):
            return ["".join(pieces)]
        return pieces

    def _as_text(self, path: Path, reference: "_Reference", quoted: bool) -> str:
        value = self._look_up(path, reference.name)
        if isinstance(value, dict):
            text = f"puts the whole section ${{{reference.name}}} into a text"
            self._fail(path, text, "refer to a single value")
        if value is None:
            text = f"puts ${{{reference.name}}} into a text, but that is null"
            self._fail(path, text, f"give '{reference.name}' a value, or refer to it alone")
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return json.dumps(text, ensure_ascii=False)[1:-1] if quoted else text

    def _look_up(self, path: Path, name: str) -> Any:
        target = tuple(name.split("."))
        if len(target) == 1 and path[-1] != name and name in self._section_of(path):
            target = (*path[:-1], name)
        value: Any = self.data
        for part in target:
            if not isinstance(value, dict) or part not in value:
                close = self._close_to(name)
                hint = f"did you mean ${{{close[0]}}}?" if close else "define it in [paths]"
                self._fail(path, f"refers to ${{{name}}}, which is not defined", hint)
            value = value[part]
        if target in self.in_progress:
            self._fail(
                path, f"refers to ${{{name}}}, which leads back to itself", "break the circle"
            )
        if len(self.in_progress) > MAX_LINKS:
            hint = "refer to the value itself"
            self._fail(path, f"refers to ${{{name}}} through more than {MAX_LINKS} others", hint)
        found = self.fill_at(target, value)
        if any(bad[: len(target)] == target for bad in self.unresolved):
            raise _Unresolved()
        self.n_filled += _size(found)
        if self.n_filled > MAX_FILLED:
            text = f"refers to ${{{name}}}, by which the config grows beyond {MAX_FILLED:,} letters"
            self._fail(path, text, "refer to less")
        return found

    def _close_to(self, name: str) -> List[str]:
        if len(name) > MAX_COMPARED or len(self.mistakes) > MAX_LISTED:
            return []  # Comparing takes long, and this hint would not be seen.
        names = [known for known in _dotted(self.data) if len(known) <= MAX_COMPARED]
        return difflib.get_close_matches(name, names, 1)

    def _section_of(self, path: Path) -> Dict[str, Any]:
        section = self.data
        for part in path[:-1]:
            section = section[part]
        return section

    def _fail(self, path: Path, text: str, hint: str) -> None:
        self.mistakes.append(VariableMistake(path, text, hint))
        raise _Unresolved()


class _Reference(NamedTuple):
    name: str


def _size(value: Any) -> int:
    """About how many letters a value has, written out."""
    n, rest = 0, [value]
    while rest:
        part = rest.pop()
        n += _OF_A_PART + (len(part) if isinstance(part, str) else 0)
        if isinstance(part, (dict, list)):
            rest.extend(part.values() if isinstance(part, dict) else part)
    return n


def _dotted(data: Dict[str, Any], prefix: str = "") -> List[str]:
    names = []
    for key, value in data.items():
        names.append(prefix + key)
        if isinstance(value, dict):
            names.extend(_dotted(value, f"{prefix}{key}."))
    return names
