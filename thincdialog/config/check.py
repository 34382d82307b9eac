"""Find all mistakes in a config, and build its objects."""

import math
import re
from itertools import zip_longest
from typing import Any, Dict, List, Optional, Sequence, Set, Union

import catalogue
from thinc.api import Model

from ..contract import (
    CodeError,
    check_methods,
    error_line,
    is_users,
    one,
    place_in,
    wrong_value,
)
from ..errors import ConfigError, DialogError, Problem, closest
from ..registry import registry
from . import mixture
from .annotations import accepts_list, as_annotated, describe, element_type, fits, takes_nothing
from .blocks import is_block, is_group
from .functions import REQUIRED, FunctionInfo, describe_function
from .given import GivenConfig, default_source
from .schemas import BLOCKS, ELSEWHERE, EMPTY, SECTION_ORDER, SETTINGS, Blocks, Setting, known_keys
from .suggestions import close_functions, close_to, value_hint
from .values import KeyPath, around, parts_of, shorten, show_value
from .variables import variables_in

# The type of all settings in [paths], which may have any name.
_PATHS = Union[str, List[str], None]
# Errors that a function may raise because of its arguments, for example if a number is too large.
REFUSALS = (DialogError, ValueError, TypeError, ArithmeticError, MemoryError)
# The beginning of error messages of registered functions about one of their arguments.
_ARGUMENT = re.compile(r"'(\w+)' of |(?:\w+: )?(\w+) (?:=|is) ")


class Checker:
    """Check the sections of a config whose variables are filled in, and collect the problems.

    given (GivenConfig): The config as given, with the place of each part.
    data (Dict[str, Any]): Nested sections with variables filled in.
    builds (bool): Whether to also build each block without mistakes, from the inside out. Errors of
        the functions are then among the problems.
    """

    def __init__(self, given: GivenConfig, data: Dict[str, Any], builds: bool = False):
        self.given = given
        self.data = data
        self.builds = builds
        self.problems: List[Problem] = []
        # Paths of unknown values, and all sections around them.
        self.unknown = {place for path in given.unknown for place in around(path)}
        # In addition, the paths of mistakes, and all sections around them.
        self.unsound: Set[KeyPath] = set(self.unknown)
        # Errors that registered functions raised, for tracebacks.
        self.causes: List[Exception] = []
        # Messages about files and folders, to the number of the problem.
        self.refused: Dict[str, int] = {}

    def add(self, path: KeyPath, text: str, hint: str = "") -> None:
        """Add a problem of a section or a key."""
        self.unsound.update(around(path))
        self.problems.append(Problem(self.given.where(*path), text, hint))

    def add_in(
        self, section: KeyPath, text: str, hint: str = "", key: Optional[str] = None
    ) -> None:
        """Add a problem whose text begins with the section; its place is that of ``key``, if
        given."""
        path = section if key is None else (*section, key)
        self.add(path, f"[{'.'.join(section)}] {text}", hint)

    def add_at(self, path: KeyPath, text: str, hint: str = "") -> None:
        """Add a problem of a value, whose text begins with the section and the key. An unknown
        value has a problem already."""
        *section, key = path
        if path not in self.unknown:
            self.add_in(tuple(section), f"'{key}' {text}", hint, key)

    def is_sound(self, path: KeyPath) -> bool:
        """Return whether there is no mistake and no unknown value at or below a path."""
        return path not in self.unsound

    def check_all(self, only: Sequence[str] = ()) -> Dict[str, Any]:
        """Check the sections, and return them with built objects instead of blocks.

        only (Sequence[str]): Names of the sections to check; all if empty.
        """
        names = [name for name in self.data if not only or name in only]
        sections = {name: self._check_section(name, self.data[name]) for name in names}
        for name, blocks in BLOCKS.items():
            if blocks.required and name not in self.data:
                written = f"[{name}.NAME]" if blocks.is_group else f"[{name}]"
                hint = f'it begins with: @{blocks.registry} = "..."'
                self.add((), f"the section {written} is missing", hint)
        if not only:
            mixture.check_task_names(self)
            mixture.check_weights(self)
        return sections

    def _check_section(self, name: str, section: Any) -> Any:
        if name not in SECTION_ORDER:
            hint = ELSEWHERE.get(name) or close_to(name, SECTION_ORDER)
            self.add((name,), f"there is no section [{name}]", hint)
        elif not isinstance(section, dict):
            self.add((name,), f"'{name}' should be a section, got {show_value(section)}")
        elif name == "paths":
            self._check_paths(section)
        elif name in SETTINGS:
            return self._check_settings(name, section)
        else:
            return self._check_blocks((name,), section, BLOCKS[name])
        return section

    def _check_paths(self, section: Dict[str, Any]) -> None:
        used = set(variables_in(self.given.data))
        for key, value in section.items():
            path, name = ("paths", key), f"paths.{key}"
            if key.startswith("@"):
                hint = "write its name without @"
                self.add_in(("paths",), f"builds nothing, got '{key}'", hint, key)
            elif not fits(value, _PATHS):
                self.add_at(path, f"should be a string or null, got {show_value(value)}")
            elif name in self.given.overrides and name not in used and "paths" not in used:
                keys = [n.split(".", 1)[1] for n in sorted(used) if n.startswith("paths.")]
                hint = close_to(key, keys) or "it has no ${paths...}"
                self.add(path, f"no setting of the config refers to '${{{name}}}'", hint)

    def _check_settings(self, name: str, section: Dict[str, Any]) -> Dict[str, Any]:
        built = dict(section)
        for key, value in section.items():
            path, blocks = (name, key), BLOCKS.get(f"{name}.{key}")
            if blocks:
                built[key] = self._check_blocks(path, value, blocks)
            elif key not in SETTINGS[name]:
                kind = "sub-section" if isinstance(value, dict) else "setting"
                hint = ELSEWHERE.get(f"{name}.{key}") or close_to(key, known_keys(name))
                self.add_in((name,), f"has no {kind} '{key}'", hint, key)
            else:
                self._check_setting(path, value, SETTINGS[name][key])
        if name == "training" and self.is_sound((name,)):
            if not any(section[key] for key in ("max_epochs", "max_steps", "max_seconds")):
                text = "max_epochs, max_steps and max_seconds are all 0"
                self.add_in((name,), text, "set one of them, or training never ends")
        return built

    def _check_setting(self, path: KeyPath, value: Any, setting: Setting) -> None:
        if path == mixture.PATH and isinstance(value, dict):
            return  # ``check_weights`` checks the values of this setting.
        wanted, hint = describe(setting.annotation), ""
        if setting.least is not None:
            wanted += f", {setting.least:g} or more"
        if not fits(value, setting.annotation):
            hint = value_hint(value, setting.annotation)
        elif isinstance(value, (str, type(None))):
            return
        elif value in (math.inf, -math.inf):
            hint = "write a number, 0 where it means no limit"
        elif setting.least is None or value >= setting.least:
            return
        comments = default_source().sections[".".join(path[:-1])].entries[path[-1]].comments
        about = " ".join(line.lstrip("# ") for line in comments).rstrip(".")
        self.add_at(path, f"should be {wanted}, got {show_value(value)}", hint or about)

    def _check_blocks(self, path: KeyPath, section: Any, blocks: Blocks) -> Any:
        name = ".".join(path)
        if section is None and name in EMPTY:
            return {} if blocks.is_group else None
        if not isinstance(section, dict):
            if path not in self.unknown:
                text = f"should be a section, got {show_value(section)}"
                self.add_in(path, text, f'it begins with: @{blocks.registry} = "..."')
            return None
        if not blocks.is_group:
            return self.check_block(path, section, blocks.registry)
        built = {}
        for key, block in section.items():
            if key == "*":
                names = ", ".join(f"[{name}.{each}]" for each in block or ("NAME",))
                self.add_in(path, "accepts names only, not '*'", f"write {names}", key)
            elif isinstance(block, dict):
                built[key] = self.check_block((*path, key), block, blocks.registry)
            elif (*path, key) not in self.unknown:
                text = f"holds sections [{name}.NAME], not the setting '{key}'"
                self.add_in(path, text, key=key)
        return built

    def check_block(self, path: KeyPath, block: Dict[str, Any], wanted: str = "") -> Any:
        """Check a block that a registered function builds, and all blocks in it.

        path (KeyPath): Path of the block.
        block (Dict[str, Any]): The block.
        wanted (str): Registry that the function must be from; "" for any.
        RETURNS (Any): The built object; None if blocks are not built or the block has a mistake.
        """
        info = self._info_of(path, block, wanted)
        if info is not None:
            return self._check_arguments(path, block, info)
        for key, value in block.items():
            if is_block(value):
                self.check_block((*path, key), value)
        return None

    def _info_of(self, path: KeyPath, block: Dict[str, Any], wanted: str) -> Optional[FunctionInfo]:
        """Return the function that a block names; None, after a problem was added, if there is
        none."""
        references = [key for key in block if key.startswith("@")]
        if not references:
            self.add_in(path, "does not say what builds it", f'add: @{wanted} = "..."')
            return None
        key, value = references[0], block[references[0]]
        registries = registry.all_registries()
        if references[1:]:
            self.add_in(path, f"holds both {' and '.join(references)}", key=references[1])
        elif (*path, key) in self.unknown:
            return None
        elif key[1:] not in registries:
            hint = close_to(key[1:], registries).replace("'", "'@", 1)
            self.add_in(path, f"there is no registry '{key}'", hint, key)
        elif not isinstance(value, str):
            self.add_at((*path, key), f"should be a name, got {show_value(value)}")
        elif key == "@ops":
            self.add_in(path, "no section is built by '@ops'", "set ops in [system]", key)
        elif wanted and key[1:] != wanted:
            hint = f'write @{wanted} = "..."'
            self.add_in(path, f"is built by '@{wanted}', got '{key}'", hint, key)
        else:
            try:
                return describe_function(key[1:], value)
            except catalogue.RegistryError:
                text = f"'{shorten(value)}' is not in '{key[1:]}'"
                self.add_in(path, text, _name_hint(key[1:], value), key)
            except DialogError as error:  # The entry point of a package is broken.
                self.add((*path, key), str(error))
        return None

    def _check_arguments(self, path: KeyPath, block: Dict[str, Any], info: FunctionInfo) -> Any:
        """Check the arguments of a block, and all blocks in it."""
        filled = {argument.name for argument in info.positional(block.get("*"))}
        misspelt: Set[str] = set()
        # Values with built objects instead of blocks.
        group: Dict[str, Any] = {}
        named: Dict[str, Any] = {}
        for key, value in block.items():
            inner = (*path, key)
            if key.startswith("@"):
                continue
            if key == "*":
                group = self._check_group(inner, value, info)
            elif key in info.arguments:
                if key in filled:
                    text = f"is already filled by the first blocks of [{'.'.join(path)}.*]"
                    self.add_at(inner, text, info.hint(key))
                named[key] = self._check_value(inner, value, info.arguments[key].annotation, info)
                if self.is_sound(inner) and (wanted := info.out_of_range(key, value)):
                    text = f"of {info.name} should be {wanted}, got {show_value(value)}"
                    self.add_at(inner, text, info.hint(key))
            elif info.takes_any:
                named[key] = self._check_value(inner, value, Any, info)
            else:
                hint = close_to(key, info.arguments) or f"it takes no arguments, see {info.where}"
                close = closest(key, info.arguments)
                misspelt.add(close)
                if info.keywords and not close:
                    # ``**keywords`` would accept a misspelt name, too.
                    rest = f"**{info.keywords} ({info.where})"
                    hint = f"a config cannot fill {rest}: make it a separate argument"
                self.add_in(path, f"{info.name} has no argument '{key}'", hint, key)
        for key, argument in info.arguments.items():
            if argument.default is REQUIRED and key not in {*block, *filled, *misspelt}:
                self.add_in(path, f"'{key}' of {info.name} is missing", info.hint(key))
        return self._build(path, group, named, info) if self.builds else None

    def _check_group(self, path: KeyPath, value: Any, info: FunctionInfo) -> Dict[str, Any]:
        section = path[:-1]
        if not isinstance(value, dict):
            self.add_at(path, f"should hold sections [{'.'.join(section)}.*.NAME]")
            return {}
        arguments = info.positional(value)
        if len(value) > len(arguments):
            text = f"{info.name} takes {len(arguments)} positional blocks, got {len(value)}"
            self.add_in(section, text, f"see {info.where}", "*")
        built = {}
        for (key, element), argument in zip_longest(value.items(), arguments):
            annotation = argument.annotation if argument else Any
            built[key] = self._check_value((*path, key), element, annotation, info)
        return built

    def _check_value(self, path: KeyPath, value: Any, annotation: Any, info: FunctionInfo) -> Any:
        """Check the value of an argument, and return it with built objects instead of blocks."""
        built: Any = value
        if is_block(value):
            built = self.check_block(path, value)
        elif is_group(value):
            if not accepts_list(annotation):
                self._add_mismatch(path, value, annotation, info)
            built = list(self._check_parts((*path, "*"), value["*"], annotation, info).values())
        elif any(is_block(part) or is_group(part) for part in parts_of(value)):
            is_section = isinstance(value, dict)
            parts = value if is_section else {str(n): part for n, part in enumerate(value)}
            parts = self._check_parts(path, parts, annotation, info)
            built = parts if is_section else list(parts.values())
        elif not fits(value, annotation):
            self._add_mismatch(path, value, annotation, info)
        if built is not value and built is not None and self.builds and self.is_sound(path):
            if not fits(built, annotation):
                wanted, got = describe(annotation), type(built).__name__
                text = f"of {info.name} should be {wanted}, got a {got}"
                self.add_at(path, text, info.hint(path[-1]))
        return as_annotated(built, annotation)

    def _check_parts(
        self, path: KeyPath, parts: Dict[str, Any], annotation: Any, info: FunctionInfo
    ) -> Dict[str, Any]:
        """Check the parts of a list or section separately, because the type of a block's object is
        not known yet."""
        annotation = element_type(annotation)
        return {k: self._check_value((*path, k), v, annotation, info) for k, v in parts.items()}

    def _build(
        self, path: KeyPath, group: Dict[str, Any], named: Dict[str, Any], info: FunctionInfo
    ) -> Any:
        """Call the function of a block, and turn the errors that it raises into problems."""
        if not self.is_sound(path):
            return None
        try:
            return self._received(path, info.function(*group.values(), **named), info)
        except ConfigError as error:
            place = place_in(error)
            for problem in error.problems:
                if problem.where:  # The problem has a complete message of its own.
                    self.unsound.update(around(path))
                    self.problems.append(problem)
                    continue
                hint = f"{problem.hint} ({place})" if problem.hint and place else problem.hint
                key = _argument_in(problem.text, named)
                self.add_in(path, problem.text, hint or place, key)
        except CodeError as error:  # Raised by an object that the function received or returned.
            self.causes.append(error)
            self.add_in(path, f"{info.name}: {error}")
        except Exception as error:
            # Functions of other packages may raise any error for a wrong argument.
            is_refusal = isinstance(error, REFUSALS) or not info.is_ours
            place = place_in(error)
            if not is_refusal and not place:
                raise
            self.causes.append(error)
            has_text = isinstance(error, (DialogError, ValueError, TypeError))
            text = " ".join(str(error).split()) if has_text else ""
            if text in self.refused:
                self._add_section(path, self.refused[text])
                return None
            if isinstance(error, DialogError):
                self.refused[text] = len(self.problems)
            shown = f"{info.name}: {text or error_line(error)}"
            key = _argument_in(text, named)
            self.add_in(path, shown, place or f"see {info.where}", key)
        return None

    def _add_section(self, path: KeyPath, number: int) -> None:
        """Name another section that has the same problem, such as a folder that is missing."""
        self.unsound.update(around(path))
        text = self.problems[number].text
        old = f"{text[:-1]}, " if " (also in [" in text else f"{text} (also in "
        self.problems[number] = self.problems[number]._replace(text=f"{old}[{'.'.join(path)}])")

    def _received(self, path: KeyPath, built: Any, info: FunctionInfo) -> Any:
        """Return a built object if its type fits its registry, else None.

        RAISES (CodeError): If a user's function has built another object.
        """
        kind = registry.all_registries()[info.registry]
        if not fits(built, kind.made):
            wanted = describe(kind.made).replace("a block that builds ", "")
            wanted = one(kind.made) if isinstance(kind.made, type) else wanted
            raise wrong_value(info.function, built, wanted)
        if isinstance(built, Model) and any(map(_is_lstm_of_thinc, built.walk())):
            text = "Thinc's LSTM.v1 computes wrong gradients on the CPU"
            hint = 'write @layers = "thincdialog.BiLSTM.v1", which reads a Ragged without padding'
            self.add_in(path, text, hint, f"@{info.registry}")
            return None
        if not is_users(info.function):
            return built
        check_methods(built)
        return kind.watch(built, info.function) if kind.watch else built

    def _add_mismatch(self, path: KeyPath, value: Any, annotation: Any, info: FunctionInfo) -> None:
        shown = f"a list [{'.'.join(path)}.*]" if is_group(value) else show_value(value)
        text = f"of {info.name} should be {describe(annotation)}, got {shown}"
        hint = value_hint(value, annotation) or info.hint(path[-1])
        if takes_nothing(annotation):
            hint = f"no value of a config has this type: annotate int, float or bool ({info.where})"
        self.add_at(path, text, hint)


def _argument_in(text: str, named: Dict[str, Any]) -> Optional[str]:
    """Return the argument that an error message of a function begins with, if any."""
    found = _ARGUMENT.match(text)
    key = found and (found[1] or found[2])
    return key if key in named else None


def _is_lstm_of_thinc(layer: Model) -> bool:
    return layer.attrs.get("registry_name") == "LSTM.v1"


def _name_hint(registry_name: str, name: str) -> str:
    """Return a hint for a name that is not in a registry."""
    registries = registry.all_registries()
    for other, known in registries.items():
        if name in known:
            return f"it is in '{other}': write @{other} = \"{name}\""
    close = close_functions(name, registries[registry_name].get_all())
    if close:
        return f"did you mean '{close[0]}'?"
    command = f"python -m thincdialog find-function --list {registry_name}"
    return f"a custom function needs --code FILE (code=FILE in Python); see all: {command}"
