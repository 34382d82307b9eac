"""Read a config into nested sections, and record the place of every part."""

from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Union

from confection import Config

from ..errors import ConfigError, Problem, closest
from .blocks import function_of, is_block
from .functions import FunctionInfo
from .schemas import BLOCKS, ELSEWHERE, OPTIONAL, SETTINGS, WEIGHTS
from .source import Source, read_source
from .values import MAX_DEPTH, KeyPath, find_unfit, parse_value, read_override, shorten, show_value

ConfigLike = Union[str, Path, Config, Dict[str, Any]]
# "section.key" to value.
Overrides = Optional[Mapping[str, Any]]
# Size in bytes of the largest file that is read as a config.
MAX_CONFIG = 4_000_000
TOO_DEEP = "it is nested too deep"

DEFAULTS_FILE = Path(__file__).parent / "default_config.cfg"


@dataclass
class GivenConfig:
    """Hold a config as given, with defaults of sections and with overrides.

    name (str): Name of the config in messages.
    written (Dict[str, Any]): Nested sections as given.
    data (Dict[str, Any]): Sections with defaults and overrides; variables are not filled in.
    locations (Dict[str, str]): Dotted name of a section or key to its place, such as "my.cfg:41".
    overrides (List[str]): Dotted names that overrides set.
    problems (List[Problem]): Mistakes in syntax and overrides.
    source (Optional[Source]): The config's text; None if it was not text.
    unknown (Set[Tuple[str, ...]]): Paths of values that cannot be read or filled in.
    """

    name: str
    written: Dict[str, Any] = field(default_factory=dict)
    data: Dict[str, Any] = field(default_factory=dict)
    locations: Dict[str, str] = field(default_factory=dict)
    overrides: List[str] = field(default_factory=list)
    problems: List[Problem] = field(default_factory=list)
    source: Optional[Source] = None
    unknown: Set[KeyPath] = field(default_factory=set)

    def where(self, *path: str) -> str:
        """Return the place of a section or key, or of the nearest section around it."""
        names = (".".join(path[:end]) for end in range(len(path), 0, -1))
        own = self.name if self.source else ""
        return next((self.locations[name] for name in names if name in self.locations), own)

    def add_at(self, path: Sequence[str], text: str, hint: str) -> None:
        """Add a problem whose text begins with the section and the key."""
        text = f"[{'.'.join(path[:-1])}] '{path[-1]}' {text}"
        self.problems.append(Problem(self.where(*path), text, hint))


def read_config(config: ConfigLike, overrides: Overrides = None) -> GivenConfig:
    """Read a config without checking its values: file, defaults, overrides.

    config (ConfigLike): A path, a config's text, a Config or a dict.
    overrides (Optional[Mapping[str, Any]]): Dotted name to value.
    RETURNS (GivenConfig): The config; ``problems`` holds mistakes in syntax and overrides.
    RAISES (ConfigError): If there is no such file, or it is not text.
    """
    if isinstance(config, dict):
        given = GivenConfig("config")
        is_literal = type(config) is Config and config.is_interpolated
        try:
            given.data = _copy_values(given, (), config, is_literal)
        except RecursionError:
            raise ConfigError([Problem("", TOO_DEEP)], given.name) from None
    else:
        given = _from_source(_read_text(config))
    given.written = deepcopy(given.data)
    _add_section_defaults(given.data)
    _apply_overrides(given, overrides or {})
    return given


def _read_text(config: Union[str, Path]) -> Source:
    if isinstance(config, str) and ("\n" in config or config.lstrip().startswith("[")):
        return read_source(config)
    name = str(config)
    try:
        with Path(config).open("rb") as file:
            content = file.read(MAX_CONFIG + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        hint = "list the bundled configs with: python -m thincdialog init config --list"
        problem = Problem("", f"there is no file '{name}'", hint)
    except UnicodeDecodeError as error:
        problem = Problem(name, f"byte {error.start} is not UTF-8", "save the file as UTF-8")
    except ValueError:  # A NUL in the path.
        problem = Problem("", f"there is no file {name!r}")
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        problem = Problem("", f"'{name}' cannot be read: {reason}")
    else:
        if len(content) <= MAX_CONFIG:
            return read_source(text.replace("\r\n", "\n").replace("\r", "\n"), name)
        problem = Problem(name, f"is larger than {MAX_CONFIG:,} bytes", "is this a config?")
    raise ConfigError([problem], name)


def _from_source(source: Source) -> GivenConfig:
    """Convert the text's sections and entries to nested sections, and record their lines."""
    given = GivenConfig(source.name, source=source)
    given.problems, given.unknown = list(source.problems), set(source.unreadable)
    # Parents first, because a child section may be written before its parent.
    for section in sorted(source.sections.values(), key=lambda s: s.name.count(".")):
        node = given.data
        parts = section.name.split(".")
        for end, part in enumerate(parts, start=1):
            given.locations.setdefault(".".join(parts[:end]), source.where(section.line))
            inner = node.setdefault(part, {})
            if not isinstance(inner, dict):
                hint = f"see [{section.name}] at {source.where(section.line)}: keep one"
                given.add_at(parts[:end], "is both a value and a section", hint)
                inner = {}
            node = inner
        given.locations[section.name] = source.where(section.line)
        for key, entry in section.entries.items():
            node[key] = parse_value(entry.raw)
            given.locations[f"{section.name}.{key}"] = source.where(entry.line)
    return given


def _copy_values(given: GivenConfig, path: KeyPath, value: Any, is_literal: bool) -> Any:
    """Copy a value without parts that JSON cannot hold, and double dollar signs if literal."""
    if len(path) > MAX_DEPTH:
        raise RecursionError()
    if isinstance(value, Mapping):
        items = value.items()
        return {str(k): _copy_values(given, (*path, str(k)), v, is_literal) for k, v in items}
    if isinstance(value, (list, tuple)):
        return [_copy_values(given, path, element, is_literal) for element in value]
    if isinstance(value, Path):
        value = str(value)
    name = f"[{'.'.join(path[:-1])}] '{path[-1]}'" if path else ""
    unfit = find_unfit(value) if isinstance(value, (str, int)) else None
    if unfit:
        where = "" if given.source is None else f"--{'.'.join(path)}"
        given.problems.append(Problem(where, f"{name} {unfit[0]}", unfit[1]))
        given.unknown.add(path)
    if isinstance(value, str):
        return value.replace("$", "$$") if is_literal else value
    if value is None or isinstance(value, (int, float)):
        return value
    hint = "a config holds numbers, strings, lists and sections; build objects with '@'"
    given.problems.append(Problem("", f"{name} is a {type(value).__name__}", hint))
    return None


@lru_cache(maxsize=1)
def default_source() -> Source:
    """Return ``default_config.cfg``, with its comments."""
    return read_source(DEFAULTS_FILE.read_text("utf8"), DEFAULTS_FILE.name)


def default_data() -> Dict[str, Any]:
    """Return the defaults of all sections, as a copy that the caller may change."""
    return _from_source(default_source()).data


def _add_section_defaults(data: Dict[str, Any]) -> None:
    """Add the settings and blocks that the config leaves out, in place."""
    defaults = default_data()
    for name, like in OPTIONAL.items():
        section, key = name.split(".")
        if isinstance(data.get(section), dict) and isinstance(data[section].get(key), dict):
            defaults[section][key] = default_data()[like]
    _merge(data, defaults, ())


def _merge(data: Dict[str, Any], defaults: Dict[str, Any], path: KeyPath) -> None:
    for key, value in defaults.items():
        name = ".".join((*path, key))
        # A block that does not name its function only changes arguments of the default block.
        changes_block = is_block(value) and not is_block(data.get(key))
        if key not in data:
            data[key] = value
        elif isinstance(data[key], dict) and (name in SETTINGS or name == "paths" or changes_block):
            _merge(data[key], value, (*path, key))


def _apply_overrides(given: GivenConfig, overrides: Mapping[str, Any]) -> None:
    # Set a block before its parts, and the function that builds it before its arguments.
    for name in sorted(overrides, key=lambda name: (name.count("."), ".@" not in name)):
        _apply_override(given, name, overrides[name])


def _apply_override(given: GivenConfig, name: str, value: Any) -> None:
    """Set a key to the value of an override, or add a problem if that is impossible. If the value
    of a section or block is a dict without a function, set each of its keys."""
    path, where = name.split("."), f"--{name}"
    parsed = read_override(value)
    if path[0] == "paths" and isinstance(value, str) and isinstance(parsed, (int, float)):
        parsed = value  # A file may have a name such as 2024.
    try:
        parsed = _copy_values(given, tuple(path), parsed, False)
    except RecursionError:
        given.problems.append(Problem(f"--{shorten(name)}", TOO_DEEP, "use fewer parts"))
        return
    node = given.data
    for end, part in enumerate(path[:-1], start=1):
        _begin_block(node, part, ".".join(path[:end]), path[end])
        inner = node.get(part)
        if not isinstance(inner, dict):
            given.problems.append(_no_section(name, path[:end], node, where))
            return
        node = inner
    is_part = isinstance(parsed, dict) and not is_block(parsed)
    if is_part and (len(path) < 2 or is_block(node.get(path[-1]))):
        _apply_overrides(given, {f"{name}.{key}": inner for key, inner in parsed.items()})
        return
    if len(path) < 2 and not isinstance(parsed, dict):
        names = [each for each in dotted_names(given.data) if each.endswith(f".{name}")]
        hint = "name its section too, as in training.max_steps"
        hint = f"did you mean {' or '.join(names)}?" if names else hint
        given.problems.append(Problem(where, f"'{name}' is not a setting in a section", hint))
        return
    replaced = function_of(node)
    node[path[-1]] = parsed
    if path[-1].startswith("@"):
        _drop_arguments(given, path[:-1], node, replaced)
    given.locations[name] = where
    given.overrides.append(name)


def dotted_names(data: Dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of all sections and keys in nested sections."""
    for key, value in data.items():
        yield prefix + key
        if isinstance(value, dict):
            yield from dotted_names(value, f"{prefix}{key}.")


def _begin_block(node: Dict[str, Any], part: str, name: str, next_part: str) -> None:
    """Create the section ``name`` for an override, if the config leaves it out, sets it to null,
    or gives a value and the override makes it a block."""
    if node.get(part) is None and name in OPTIONAL:
        node[part] = default_data()[OPTIONAL[name]]
    elif part not in node and name in BLOCKS or node.get(part, 0) is None and name == WEIGHTS:
        node[part] = {}
    elif next_part.startswith("@") and not isinstance(node.get(part), dict):
        info = function_of(node)
        if info and part in info.arguments:
            node[part] = {}


def _drop_arguments(
    given: GivenConfig, path: List[str], block: Dict[str, Any], replaced: Optional[FunctionInfo]
) -> None:
    """Drop arguments that the new function of a block does not take, if they come from the default
    block or belong to the function that was replaced. All other arguments stay, so that the check
    reports them."""
    info = function_of(block)
    if info is None or info.takes_any:
        return
    own: Any = given.written
    for part in path:
        own = own.get(part) if isinstance(own, dict) else None
    own = own if isinstance(own, dict) else {}
    for key in [key for key in block if key[0] != "@" and key not in info.arguments]:
        name = ".".join([*path, key])
        if any(f"{other}.".startswith(f"{name}.") for other in given.overrides):
            continue
        is_default = not is_block(own) and key not in own
        is_meant = replaced and key in replaced.arguments
        if is_default or is_meant:
            del block[key]


def _no_section(name: str, path: List[str], node: Dict[str, Any], where: str) -> Problem:
    sections = [key for key, value in node.items() if isinstance(value, dict)]
    close = closest(path[-1], sections)
    hint = f"it has: {', '.join(sections)}" if sections else ""
    hint = ELSEWHERE.get(".".join(path), hint)
    if path[-1] in node:
        hint = f"'{path[-1]}' is a value, {show_value(node[path[-1]])}"
    elif close:
        hint = f"did you mean --{'.'.join([*path[:-1], close, *name.split('.')[len(path) :]])}?"
    return Problem(where, f"the config has no section [{'.'.join(path)}]", hint)
