"""Builds the objects that a config's blocks describe."""

import re
from inspect import Parameter
from typing import Any, Callable, Dict, List, Optional

from ..errors import ConfigError, DialogError, Problem
from .annotations import as_annotated, describe, fits
from .blocks import function_of, is_block, is_group
from .functions import FunctionInfo
from .given import GivenConfig
from .values import KeyPath, parts_of

_ARGUMENT = re.compile(r"'(\w+)' of ")


class _Unbuilt:
    """Stands for what could not be built; the reason is among the problems."""


UNBUILT = _Unbuilt()


class Builder:
    """Builds blocks from the inside out, and goes on after a mistake.

    given (GivenConfig): Knows where each block stands.
    """

    def __init__(self, given: GivenConfig):
        self.given = given
        self.problems: List[Problem] = []
        # What registered functions raised, for tracebacks.
        self.causes: List[Exception] = []

    def build_section(self, path: KeyPath, section: Dict[str, Any]) -> Dict[str, Any]:
        return {key: self.build_value((*path, key), value) for key, value in section.items()}

    def build_value(self, path: KeyPath, value: Any) -> Any:
        """The object for a block; a list for a ``*`` group; else the value itself."""
        if is_block(value):
            return self._build_block(path, value)
        if is_group(value):
            return list(self.build_section((*path, "*"), value["*"]).values())
        if isinstance(value, dict):
            return self.build_section(path, value)
        if isinstance(value, list):
            return [self.build_value((*path, str(i)), element) for i, element in enumerate(value)]
        return value

    def build_sound_blocks(
        self, path: KeyPath, section: Dict[str, Any], is_sound: Callable[[KeyPath], bool]
    ) -> None:
        """Build, for their problems alone, the blocks in which nothing is wrong yet."""
        for key, value in section.items():
            inner = (*path, key)
            if is_block(value) and is_sound(inner):
                self._build_block(inner, value)
            elif isinstance(value, dict):
                self.build_sound_blocks(inner, value, is_sound)

    def _build_block(self, path: KeyPath, block: Dict[str, Any]) -> Any:
        info = function_of(block)
        assert info is not None  # Only checked blocks are built.
        group = self.build_section((*path, "*"), block.get("*", {}))
        named = {key: value for key, value in block.items() if key != "*" and key[:1] != "@"}
        named = self.build_section(path, named)
        if any(part is UNBUILT for part in parts_of([group, named])):
            return UNBUILT
        n_before = len(self.problems)
        names = info.positional(group)
        for index, (key, value) in enumerate(group.items()):
            argument = info.arguments[names[index]] if index < len(names) else None
            self._check_built((*path, "*", key), value, argument, path, info)
        for key, value in named.items():
            self._check_built((*path, key), value, info.arguments.get(key), path, info)
        if len(self.problems) > n_before:
            return UNBUILT
        try:
            for key, argument in info.arguments.items():
                if key in named:
                    named[key] = as_annotated(named[key], argument.annotation)
            return info.function(*group.values(), **named)
        except ConfigError as error:
            self.problems.extend(self._located(path, block, p) for p in error.problems)
        except (DialogError, ValueError, TypeError) as error:
            self.causes.append(error)
            reason = " ".join(str(error).split()) or type(error).__name__
            text = f"[{'.'.join(path)}] {info.name}: {reason}"
            self.problems.append(Problem(self.given.where(*path), text, f"see {info.where}"))
        return UNBUILT

    def _located(self, path: KeyPath, block: Dict[str, Any], problem: Problem) -> Problem:
        """What a registered function found wrong, with the place of the argument it
        names ("'size' of ..."), or of its block."""
        if problem.where:
            return problem
        named = _ARGUMENT.match(problem.text)
        inner = (*path, named[1]) if named and named[1] in block else path
        text = f"[{'.'.join(path)}] {problem.text}"
        return problem._replace(where=self.given.where(*inner), text=text)

    def _check_built(
        self,
        path: KeyPath,
        value: Any,
        argument: Optional[Parameter],
        block: KeyPath,
        info: FunctionInfo,
    ) -> None:
        """A built object against its annotation; plain values were checked before."""
        annotation = argument.annotation if argument else info.variadic
        if annotation is None or value is None or fits(value, annotation):
            return
        wanted, got = describe(annotation), type(value).__name__
        text = f"[{'.'.join(block)}] '{path[-1]}' of {info.name} should be {wanted}, got a {got}"
        hint = info.hint(argument.name) if argument else f"see {info.where}"
        self.problems.append(Problem(self.given.where(*path), text, hint))
