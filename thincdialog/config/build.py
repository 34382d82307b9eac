"""Builds the objects that a config's blocks describe."""

import re
from typing import Any, Callable, Dict, List

from ..errors import ConfigError, DialogError, Problem
from .annotations import as_annotated, describe, fits
from .blocks import is_block, is_group, positional_names
from .functions import FunctionInfo, describe_function
from .reading import Reading
from .variables import Path

_ARGUMENT = re.compile(r"'(\w+)' of ")


class _Unbuilt:
    """Stands for what could not be built; the reason is among the problems."""


UNBUILT = _Unbuilt()


class Builder:
    """Builds blocks from the inside out, and goes on after a mistake.

    reading (Reading): Knows where each block stands.
    """

    def __init__(self, reading: Reading):
        self.reading = reading
        self.problems: List[Problem] = []
        # What registered functions raised, for tracebacks.
        self.causes: List[Exception] = []

    def build_section(self, path: Path, section: Dict[str, Any]) -> Dict[str, Any]:
        return {key: self.build_value((*path, key), value) for key, value in section.items()}

    def build_value(self, path: Path, value: Any) -> Any:
        """The object for a block; a list for a ``*`` group; else the value itself."""
        if is_block(value):
            return self._build_block(path, value)
        if is_group(value):
            group = value["*"].items()
            return [self.build_value((*path, "*", key), element) for key, element in group]
        if isinstance(value, dict):
            return self.build_section(path, value)
        if isinstance(value, list):
            return [self.build_value((*path, str(i)), element) for i, element in enumerate(value)]
        return value

    def build_sound_blocks(
        self, path: Path, section: Dict[str, Any], is_sound: Callable[[Path], bool]
    ) -> None:
        """Build, for their problems alone, the blocks in which nothing is wrong yet."""
        for key, value in section.items():
            inner = (*path, key)
            if is_block(value) and is_sound(inner):
                self._build_block(inner, value)
            elif isinstance(value, dict):
                self.build_sound_blocks(inner, value, is_sound)

    def _build_block(self, path: Path, block: Dict[str, Any]) -> Any:
        reference = next(key for key in block if key.startswith("@"))
        info = describe_function(reference[1:], block[reference])
        group = block.get("*", {})
        positional = [self.build_value((*path, "*", k), value) for k, value in group.items()]
        named = {
            key: self.build_value((*path, key), value)
            for key, value in block.items()
            if not key.startswith("@") and key != "*"
        }
        if _holds_unbuilt([*positional, *named.values()]):
            return UNBUILT
        n_before = len(self.problems)
        self._check_built(path, dict(zip(group, positional)), info, group=True)
        self._check_built(path, named, info)
        if len(self.problems) > n_before:
            return UNBUILT
        try:
            return info.function(*positional, **_as_annotated(named, info))
        except ConfigError as error:
            self.problems.extend(self._located(path, block, p) for p in error.problems)
        except (DialogError, ValueError, TypeError) as error:
            self.causes.append(error)
            text = " ".join(str(error).split()) or type(error).__name__
            where = self.reading.where(*path)
            self.problems.append(
                Problem(where, f"[{'.'.join(path)}] {info.name}: {text}", f"see {info.where}")
            )
        return UNBUILT

    def _located(self, path: Path, block: Dict[str, Any], problem: Problem) -> Problem:
        """What a registered function found wrong, with the place of the argument it
        names ("'size' of ..."), or of its block."""
        if problem.where:
            return problem
        text = f"[{'.'.join(path)}] {problem.text}"
        named = _ARGUMENT.match(problem.text)
        inner = (*path, named[1]) if named and named[1] in block else path
        return problem._replace(where=self.reading.where(*inner), text=text)

    def _check_built(
        self, path: Path, values: Dict[str, Any], info: FunctionInfo, group: bool = False
    ) -> None:
        """Built objects against annotations; plain values were checked before."""
        names = positional_names(info, len(values)) if group else []
        for index, (key, value) in enumerate(values.items()):
            argument = info.arguments.get(names[index] if index < len(names) else key)
            annotation = argument.annotation if argument else info.variadic
            if annotation is None or value is None or fits(value, annotation):
                continue
            inner = (*path, "*", key) if group else (*path, key)
            wanted, got = describe(annotation), type(value).__name__
            text = f"[{'.'.join(path)}] '{key}' of {info.name} should be {wanted}, got a {got}"
            hint = info.hint(argument.name) if argument else f"see {info.where}"
            self.problems.append(Problem(self.reading.where(*inner), text, hint))


def _as_annotated(values: Dict[str, Any], info: FunctionInfo) -> Dict[str, Any]:
    known = info.arguments
    return {
        key: as_annotated(value, known[key].annotation) if key in known else value
        for key, value in values.items()
    }


def _holds_unbuilt(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return any(map(_holds_unbuilt, value))
    return value is UNBUILT
