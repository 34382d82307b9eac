"""Fill in ``${section.key}`` and ``${section}``, as confection does.

``${a.b}`` alone keeps the type of the value that it refers to; in a longer text it becomes part of
a string. ``$$`` is a dollar sign. ``${key}`` without a dot is a key of the same section, or else a
whole section. The code works on nested dicts and continues after a mistake, so that all mistakes
can be shown at once.
"""

import json
import re
from copy import deepcopy
from functools import reduce
from operator import getitem
from typing import Any, Dict, Iterator, List, Set

from ..errors import MAX_LISTED, closest
from .given import GivenConfig, dotted_names
from .values import KeyPath, around, parse_value, parts_of

_TOKEN = re.compile(r"\$\$|\$\{(?P<name>[^}$]+)\}|\$")

# Limits on the length of a chain of variables (including the sections around them), and on the
# characters and values that variables expand to. They are high enough for any config, and low
# enough not to exhaust the stack or the memory.
MAX_LINKS = 100
MAX_FILLED = 4_000_000
_OF_A_PART = 20  # A value counts as this many characters, in addition to its own.


class _Unresolved(Exception):
    pass


def fill_variables(given: GivenConfig, data: Dict[str, Any]) -> Dict[str, Any]:
    """Replace all variables by the values that they refer to.

    given (GivenConfig): Config that the problems and the paths of unknown values are added to.
    data (Dict[str, Any]): Nested sections; strings as ``parse_value`` leaves them.
    RETURNS (Dict[str, Any]): A new dict; unknown values are None.
    """
    return _Filler(given, data).fill_section((), data)


def variables_in(data: Any) -> Iterator[str]:
    """Yield the dotted names of all variables in a value or section."""
    for part in parts_of(data):
        for token in _TOKEN.finditer(part) if isinstance(part, str) else ():
            if token["name"]:
                yield token["name"].replace(":", ".")


class _Filler:
    def __init__(self, given: GivenConfig, data: Dict[str, Any]):
        self.given = given
        self.data = data
        self.n_mistakes = 0
        # Paths of values that cannot be filled in, and all sections around them.
        self.in_part_unresolved: Set[KeyPath] = set()
        self.filled: Dict[KeyPath, Any] = {}
        self.in_progress: List[KeyPath] = []
        self.n_filled = 0

    def fill_section(self, path: KeyPath, section: Dict[str, Any]) -> Dict[str, Any]:
        return {key: self.fill((*path, key), value) for key, value in section.items()}

    def fill(self, path: KeyPath, value: Any) -> Any:
        if path not in self.filled:
            self.in_progress.append(path)
            try:
                filled = self.fill_section if isinstance(value, dict) else self._fill_value
                self.filled[path] = filled(path, value)
            except _Unresolved:
                self.given.unknown.add(path)
                self.in_part_unresolved.update(around(path))
                self.filled[path] = None
            self.in_progress.pop()
        return self.filled[path]

    def _fill_value(self, path: KeyPath, value: Any) -> Any:
        """Replace the variables in a value that is not a section."""
        if not isinstance(value, (str, list)):
            return value
        raw = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        tokens = list(_TOKEN.finditer(raw))
        if not tokens:
            return value
        names = [token["name"].strip().replace(":", ".") for token in tokens if token["name"]]
        if any(token.group() == "$" for token in tokens):
            text = "holds a lone '$'"
            self._fail(path, text, "write $$ for a dollar sign, ${section.key} for a variable")
        if names and tokens[0].group() == raw:
            return deepcopy(self._look_up(path, names[0]))

        rest = iter(names)

        def written(token: re.Match) -> str:
            return self._as_text(path, next(rest), raw[0] in '"[{') if token["name"] else "$"

        text = _TOKEN.sub(written, raw)
        # Only a value that was written as JSON is parsed again. A plain string whose dollar signs
        # were doubled remains a string.
        return parse_value(text) if names or isinstance(value, list) else text

    def _as_text(self, path: KeyPath, name: str, quoted: bool) -> str:
        value = self._look_up(path, name)
        if isinstance(value, dict):
            text = f"puts the whole section ${{{name}}} into a text"
            self._fail(path, text, "refer to a single value")
        if value is None:
            text = f"puts ${{{name}}} into a text, but that is null"
            self._fail(path, text, f"give '{name}' a value, or refer to it alone")
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return json.dumps(text, ensure_ascii=False)[1:-1] if quoted else text

    def _look_up(self, path: KeyPath, name: str) -> Any:
        """Return the filled-in value that a variable refers to. For a mistake, add a problem and
        raise ``_Unresolved``."""
        target = tuple(name.split("."))
        own_section = reduce(getitem, path[:-1], self.data)
        if len(target) == 1 and path[-1] != name and name in own_section:
            target = (*path[:-1], name)
        value: Any = self.data
        for part in target:
            if not isinstance(value, dict) or part not in value:
                close = self._close_to(name)
                hint = f"did you mean ${{{close}}}?" if close else "define it in [paths]"
                self._fail(path, f"refers to ${{{name}}}, which is not defined", hint)
            value = value[part]
        if target in self.in_progress:
            text = f"refers to ${{{name}}}, which leads back to itself"
            self._fail(path, text, "break the cycle")
        if len(self.in_progress) > MAX_LINKS:
            hint = "refer to the value itself"
            self._fail(path, f"refers to ${{{name}}} through more than {MAX_LINKS} others", hint)
        found = self.fill(target, value)
        if target in self.in_part_unresolved:
            raise _Unresolved()
        for part in parts_of(found):
            self.n_filled += _OF_A_PART + (len(part) if isinstance(part, str) else 0)
        if self.n_filled > MAX_FILLED:
            text = f"refers to ${{{name}}}, which makes the config exceed {MAX_FILLED:,} characters"
            self._fail(path, text, "use fewer or shorter variables")
        return found

    def _close_to(self, name: str) -> str:
        # Comparing is slow, and only the first hints are shown.
        return "" if self.n_mistakes > MAX_LISTED else closest(name, dotted_names(self.data))

    def _fail(self, path: KeyPath, text: str, hint: str) -> None:
        self.given.add_at(path, text, hint)
        self.n_mistakes += 1
        raise _Unresolved()
