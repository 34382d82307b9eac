"""Brings a config from wherever it is given into nested sections, and remembers
where every part of it stands."""

import difflib
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple, Union

import catalogue
from confection import Config

from ..errors import ConfigError, DialogError, Problem
from .functions import FunctionInfo, describe_function
from .schemas import BLOCKS, OPTIONAL, SETTINGS, WEIGHTS
from .source import Source, read_source
from .values import MAX_DEPTH, find_unfit, parse_value, read_override, show_value

ConfigLike = Union[str, Path, Config, Dict[str, Any]]
# Largest file in bytes that is read as a config.
MAX_CONFIG = 4_000_000

DEFAULTS_FILE = Path(__file__).parent / "default_config.cfg"


@dataclass
class Reading:
    """A config as given, with defaults of sections and overrides.

    written (Dict[str, Any]): Nested sections as they were given.
    data (Dict[str, Any]): With defaults and overrides; variables not filled in.
    locations (Dict[str, str]): Dotted name of a section or key to where it stands.
    overrides (List[str]): Dotted names that overrides set.
    unreadable (Set[Tuple[str, ...]]): Section parts and key of values with a problem.
    """

    name: str
    written: Dict[str, Any] = field(default_factory=dict)
    data: Dict[str, Any] = field(default_factory=dict)
    locations: Dict[str, str] = field(default_factory=dict)
    overrides: List[str] = field(default_factory=list)
    problems: List[Problem] = field(default_factory=list)
    source: Optional[Source] = None
    unreadable: Set[Tuple[str, ...]] = field(default_factory=set)

    def where(self, *path: str) -> str:
        """Where a section or key stands, or else the nearest part around it."""
        for end in range(len(path), 0, -1):
            found = self.locations.get(".".join(path[:end]))
            if found:
                return found
        return self.name if self.source else ""


def read_config(config: ConfigLike, overrides: Optional[Mapping[str, Any]] = None) -> Reading:
    """Read a config without judging it: file, defaults, overrides.

    config (ConfigLike): A path, a config's text, a Config or a dict.
    overrides (Optional[Mapping[str, Any]]): Dotted name to value.
    RETURNS (Reading): ``problems`` holds mistakes of syntax and of overrides.
    RAISES (ConfigError): If there is no such file or it is no text.
    """
    if isinstance(config, dict):
        reading = Reading("config")
        is_literal = (
            isinstance(config, Config) and config.is_interpolated and type(config) is Config
        )
        try:
            reading.data = _copy_values(reading, (), config, is_literal)
        except RecursionError:
            raise ConfigError([Problem("", "it is nested too deep")], reading.name) from None
    else:
        reading = _from_source(_read_text(config))
    reading.written = deepcopy(reading.data)
    add_section_defaults(reading.data)
    # What builds a block comes before its arguments.
    ordered = sorted((overrides or {}).items(), key=lambda item: ".@" not in item[0])
    for name, value in ordered:
        _apply_override(reading, name, value, f"--{name}")
    return reading


def _read_text(config: Union[str, Path]) -> Source:
    if isinstance(config, str) and ("\n" in config or config.lstrip().startswith("[")):
        return read_source(config)
    path, name = Path(config), str(config)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CONFIG + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        hint = "list the configs that come along with: python -m thincdialog init config --list"
        raise ConfigError([Problem("", f"there is no file '{name}'", hint)], name) from None
    except ValueError as error:
        if not isinstance(error, UnicodeDecodeError):  # A NUL in the path.
            raise ConfigError([Problem("", f"there is no file {name!r}")], name) from None
        text = f"byte {error.start} is not UTF-8"
        raise ConfigError([Problem(name, text, "save the file as UTF-8")], name) from None
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise ConfigError([Problem("", f"'{name}' cannot be read: {reason}")], name) from None
    if len(content) > MAX_CONFIG:
        problem = Problem(name, f"is larger than {MAX_CONFIG:,} bytes", "is this a config?")
        raise ConfigError([problem], name)
    return read_source(text.replace("\r\n", "\n").replace("\r", "\n"), name)


def _from_source(source: Source) -> Reading:
    reading = Reading(source.name, source=source)
    reading.problems, reading.unreadable = list(source.problems), set(source.unreadable)
    # Parents first: a child section may stand before its parent.
    for section in sorted(source.sections.values(), key=lambda s: s.name.count(".")):
        node = reading.data
        parts = section.name.split(".")
        for end, part in enumerate(parts, start=1):
            reading.locations.setdefault(".".join(parts[:end]), source.where(section.line))
            inner = node.setdefault(part, {})
            if not isinstance(inner, dict):
                where = reading.where(*parts[:end])
                text = f"[{'.'.join(parts[: end - 1])}] '{part}' is both a value and a section"
                hint = f"see [{section.name}] at line {section.line}: keep one"
                reading.problems.append(Problem(where, text, hint))
                inner = {}
            node = inner
        reading.locations[section.name] = source.where(section.line)
        for key, entry in section.entries.items():
            node[key] = parse_value(entry.raw)
            reading.locations[f"{section.name}.{key}"] = source.where(entry.line)
    return reading


def _copy_values(reading: Reading, path: tuple, value: Any, is_literal: bool) -> Any:
    """A copy that holds only what JSON can hold; dollars doubled if literal."""
    if len(path) > MAX_DEPTH:
        raise RecursionError()
    if isinstance(value, Mapping):
        items = value.items()
        return {str(k): _copy_values(reading, (*path, str(k)), v, is_literal) for k, v in items}
    if isinstance(value, (list, tuple)):
        return [_copy_values(reading, path, element, is_literal) for element in value]
    if isinstance(value, Path):
        value = str(value)
    unfit = find_unfit(value) if isinstance(value, (str, int)) else None
    if unfit:
        where = "" if reading.source is None else f"--{'.'.join(path)}"
        text = f"[{'.'.join(path[:-1])}] '{path[-1]}' {unfit[0]}"
        reading.problems.append(Problem(where, text, unfit[1]))
        reading.unreadable.add(path)
    if isinstance(value, str):
        return value.replace("$", "$$") if is_literal else value
    if value is not None and not isinstance(value, (bool, int, float)):
        text = f"[{'.'.join(path[:-1])}] '{path[-1]}' is a {type(value).__name__}"
        hint = "a config holds numbers, strings, lists and sections; build objects with '@'"
        reading.problems.append(Problem("", text, hint))
        return None
    return value


@lru_cache(maxsize=1)
def default_source() -> Source:
    """``default_config.cfg``, with its comments."""
    return read_source(DEFAULTS_FILE.read_text("utf8"), DEFAULTS_FILE.name)


def add_section_defaults(data: Dict[str, Any]) -> None:
    """Add the settings and blocks that the config does not mention, in place."""
    defaults = _from_source(default_source()).data
    _merge(data, defaults, ())
    for name in OPTIONAL:
        section, key = name.split(".")
        block = data[section].get(key) if isinstance(data[section], dict) else None
        if isinstance(block, dict) and _is_same_block(block, default_block(name)):
            _merge(block, default_block(name), (section, key))


def default_block(name: str) -> Dict[str, Any]:
    """The block that an optional one begins with."""
    return _from_source(default_source()).data[OPTIONAL[name]]


def _merge(data: Dict[str, Any], defaults: Dict[str, Any], path: tuple) -> None:
    for key, value in defaults.items():
        name = ".".join((*path, key))
        if key not in data:
            data[key] = value
        elif isinstance(data[key], dict) and (
            name in SETTINGS or name == "paths" or _is_same_block(data[key], value)
        ):
            _merge(data[key], value, (*path, key))


def _is_same_block(block: Dict[str, Any], default: Any) -> bool:
    """Whether a block leaves it to the defaults what builds it: it only changes arguments."""
    return (
        isinstance(default, dict)
        and any(key.startswith("@") for key in default)
        and not any(key.startswith("@") for key in block)
    )


def _apply_override(reading: Reading, name: str, value: Any, where: str) -> None:
    path = name.split(".")
    parsed = read_override(value)
    if path[0] == "paths" and isinstance(value, str) and isinstance(parsed, (int, float)):
        parsed = value  # A file may be called 2024.
    parsed = _copy_values(reading, tuple(path), parsed, False)
    node = reading.data
    for end, part in enumerate(path[:-1], start=1):
        _begin_block(node, part, ".".join(path[:end]), path[end])
        inner = node.get(part)
        if not isinstance(inner, dict):
            reading.problems.append(_no_section(name, path[:end], node, where))
            return
        node = inner
    if len(path) < 2:
        hint = "name its section too, as in --training.max_steps"
        reading.problems.append(Problem(where, f"'{name}' is no setting of a section", hint))
        return
    replaced = _function_of(node)
    node[path[-1]] = parsed
    if path[-1].startswith("@"):
        _drop_arguments(reading, path[:-1], node, replaced)
    reading.locations[name] = where
    reading.overrides.append(name)


def _begin_block(node: Dict[str, Any], part: str, name: str, next_part: str) -> None:
    """Make a place for an override in what the config does not mention, sets to null, or
    gives as a value where a block shall build it."""
    if node.get(part) is None and name in OPTIONAL:
        node[part] = default_block(name)
    elif part not in node and name in BLOCKS or node.get(part, 0) is None and name == WEIGHTS:
        node[part] = {}
    elif next_part.startswith("@") and not isinstance(node.get(part), dict):
        info = _function_of(node)
        if info and part in info.arguments:
            node[part] = {}


def _function_of(block: Dict[str, Any]) -> Optional[FunctionInfo]:
    """What builds a block; None if nothing does, or nothing that there is."""
    reference = next((key for key in block if key.startswith("@")), None)
    try:
        return describe_function(reference[1:], block[reference]) if reference else None
    except (catalogue.RegistryError, DialogError, AttributeError, ValueError, TypeError):
        return None  # The check says what is wrong.


def _drop_arguments(
    reading: Reading, path: List[str], block: Dict[str, Any], replaced: Optional[FunctionInfo]
) -> None:
    """Leave out what the function that now builds a block does not take: what came from
    the default block, and values that were meant for the function it replaces. Written
    sections stay, for the check to say that they are lost."""
    info = _function_of(block)
    if info is None or info.takes_any:
        return
    written: Any = reading.written
    for part in path:
        written = written.get(part, {}) if isinstance(written, dict) else {}
    own = written if isinstance(written, dict) else {}
    is_default = not any(key.startswith("@") for key in own)
    for key in [key for key in block if key[0] != "@" and key not in info.arguments]:
        name = ".".join([*path, key])
        if any(other == name or other.startswith(f"{name}.") for other in reading.overrides):
            continue
        is_value = not isinstance(block[key], dict)
        if is_default and key not in own or replaced and key in replaced.arguments and is_value:
            del block[key]


def _no_section(name: str, path: List[str], node: Dict[str, Any], where: str) -> Problem:
    sections = [key for key, value in node.items() if isinstance(value, dict)]
    close = difflib.get_close_matches(path[-1], sections, 1)
    text = f"the config has no section [{'.'.join(path)}]"
    if path[-1] in node:
        return Problem(where, text, f"'{path[-1]}' is a value, {show_value(node[path[-1]])}")
    if close:
        better = ".".join([*path[:-1], close[0], *name.split(".")[len(path) :]])
        return Problem(where, text, f"did you mean --{better}?")
    return Problem(where, text, f"it has: {', '.join(sections)}" if sections else "")
