"""Finds everything that is wrong with a config, before anything is built or read."""

from typing import Any, Dict, List, Optional, Set

import catalogue

from ..errors import DialogError, Problem
from ..registry import registry
from .annotations import accepts_list, describe, element_type, fits, takes_nothing
from .blocks import is_block, is_group
from .functions import REQUIRED, FunctionInfo, describe_function
from .given import GivenConfig, default_source
from .mixture import check_task_names, check_weights
from .ranges import out_of_range
from .schemas import (
    BLOCKS,
    ELSEWHERE,
    PATH,
    PATHS,
    SECTION_ORDER,
    SETTINGS,
    WEIGHTS,
    Blocks,
    Setting,
    known_keys,
)
from .suggestions import close_functions, close_to, value_hint
from .values import KeyPath, parts_of, shorten, show_value
from .variables import variables_in


class Checker:
    """Walks a config whose variables are filled in.

    data (Dict[str, Any]): Nested sections, variables filled in.
    unresolved (Set[Tuple[str, ...]]): Values that are not known for want of a variable.
    """

    def __init__(self, given: GivenConfig, data: Dict[str, Any], unresolved: Set[KeyPath]):
        self.given = given
        self.data = data
        self.unresolved = unresolved
        self.problems: List[Problem] = []
        # Blocks whose function is known can be built on trial, if nothing in them is wrong.
        self.checked_blocks: Set[KeyPath] = set()
        self.bad_paths: Set[KeyPath] = set(unresolved)

    def add(self, path: KeyPath, text: str, hint: str = "") -> None:
        self.bad_paths.add(path)
        self.problems.append(Problem(self.given.where(*path), text, hint))

    def is_sound(self, path: KeyPath) -> bool:
        """Whether nothing at or below a path was wrong or is unknown."""
        return not any(found[: len(path)] == path for found in self.bad_paths)

    def is_sound_block(self, path: KeyPath) -> bool:
        """Whether a block can be built."""
        return path in self.checked_blocks and self.is_sound(path)

    def check_all(self) -> None:
        for name, section in self.data.items():
            if name not in SECTION_ORDER:
                self.add((name,), f"there is no section [{name}]", close_to(name, SECTION_ORDER))
            elif not isinstance(section, dict):
                self.add((name,), f"'{name}' should be a section, got {show_value(section)}")
            elif name == "paths":
                self._check_paths(section)
            elif name in SETTINGS:
                self._check_settings((name,), section)
            else:
                self._check_blocks((name,), section, BLOCKS[name])
        for name, blocks in BLOCKS.items():
            if blocks.required and name not in self.data:
                written = f"[{name}.NAME]" if blocks.is_group else f"[{name}]"
                hint = f'it begins with: @{blocks.registry} = "..."'
                self.add((), f"the section {written} is missing", hint)
        check_task_names(self)
        check_weights(self)

    def _check_paths(self, section: Dict[str, Any]) -> None:
        used = set(variables_in(self.given.data))
        for key, value in section.items():
            path, name = ("paths", key), f"paths.{key}"
            if not (fits(value, PATH) or fits(value, PATHS)) and path not in self.unresolved:
                text = f"[paths] '{key}' should be a string or null, got {show_value(value)}"
                self.add(path, text)
            elif name in self.given.overrides and name not in used and "paths" not in used:
                keys = [n.split(".", 1)[1] for n in sorted(used) if n.startswith("paths.")]
                hint = close_to(key, keys) or "it holds no ${paths...} at all"
                self.add(path, f"the config uses '${{{name}}}' nowhere", hint)

    def _check_settings(self, path: KeyPath, section: Dict[str, Any]) -> None:
        name = ".".join(path)
        for key, value in section.items():
            blocks = BLOCKS.get(f"{name}.{key}")
            if blocks:
                self._check_blocks((*path, key), value, blocks)
            elif key not in SETTINGS[name]:
                kind = "sub-section" if isinstance(value, dict) else "setting"
                hint = ELSEWHERE.get(f"{name}.{key}") or close_to(key, known_keys(name))
                self.add((*path, key), f"[{name}] has no {kind} '{key}'", hint)
            elif (*path, key) not in self.unresolved:
                self._check_setting((*path, key), value, SETTINGS[name][key])
        if name == "training" and self.is_sound(path):
            if not any(section[key] for key in ("max_epochs", "max_steps", "max_seconds")):
                text = "[training] max_epochs, max_steps and max_seconds are all 0"
                self.add(path, text, "set one of them, or training never ends")

    def _check_setting(self, path: KeyPath, value: Any, setting: Setting) -> None:
        if ".".join(path) == WEIGHTS and isinstance(value, dict):
            return  # check_weights() looks at each of them.
        name, key = ".".join(path[:-1]), path[-1]
        wanted, hint = describe(setting.annotation), ""
        least, most = setting.least, setting.most
        if least is not None:
            wanted += f", {least:g} or more" if most is None else f", {least:g} to {most:,g}"
        if not fits(value, setting.annotation):
            hint = value_hint(value, setting.annotation)
        elif (least is None or value >= least) and (most is None or value <= most):
            return
        comments = default_source().sections[name].entries[key].comments
        about = " ".join(line.lstrip("# ") for line in comments).rstrip(".")
        self.add(
            path, f"[{name}] '{key}' should be {wanted}, got {show_value(value)}", hint or about
        )

    def _check_blocks(self, path: KeyPath, section: Any, blocks: Blocks) -> None:
        name = ".".join(path)
        if section is None and not blocks.required:
            return
        if not isinstance(section, dict):
            if path not in self.unresolved:
                text = f"[{name}] should be a section, got {show_value(section)}"
                self.add(path, text, f'it begins with: @{blocks.registry} = "..."')
        elif not blocks.is_group:
            self.check_block(path, section, blocks.registry)
        else:
            for key, block in section.items():
                if key == "*":
                    names = ", ".join(f"[{name}.{each}]" for each in block or ("NAME",))
                    self.add((*path, key), f"[{name}] takes no '*', only names", f"write {names}")
                elif isinstance(block, dict):
                    self.check_block((*path, key), block, blocks.registry)
                elif (*path, key) not in self.unresolved:
                    text = f"[{name}] holds sections [{name}.NAME], not the setting '{key}'"
                    self.add((*path, key), text)

    def check_block(self, path: KeyPath, block: Dict[str, Any], wanted: str = "") -> None:
        """Check a block that a registered function builds, and all blocks in it.

        wanted (str): The registry the function must come from; "" for any.
        """
        info = self._function_of(path, block, wanted)
        if info is not None:
            self.checked_blocks.add(path)
            self._check_arguments(path, block, info)
            return
        for key, value in block.items():
            if is_block(value):
                self.check_block((*path, key), value)

    def _function_of(
        self, path: KeyPath, block: Dict[str, Any], wanted: str
    ) -> Optional[FunctionInfo]:
        name = ".".join(path)
        references = [key for key in block if key.startswith("@")]
        if len(references) != 1:
            if references:
                text = f"[{name}] holds both {' and '.join(references)}"
                self.add((*path, references[1]), text)
            else:
                self.add(path, f"[{name}] does not say what builds it", f'add: @{wanted} = "..."')
            return None
        key, value = references[0], block[references[0]]
        inner, registries = (*path, key), registry.all_registries()
        if inner in self.unresolved:
            return None
        if key[1:] not in registries:
            hint = close_to(key[1:], registries).replace("'", "'@", 1)
            self.add(inner, f"[{name}] there is no registry '{key}'", hint)
        elif not isinstance(value, str):
            self.add(inner, f"[{name}] '{key}' should be a name, got {show_value(value)}")
        elif wanted and key[1:] != wanted:
            text = f"[{name}] is built by '@{wanted}', got '{key}'"
            self.add(inner, text, f'write @{wanted} = "..."')
        else:
            try:
                return describe_function(key[1:], value)
            except catalogue.RegistryError:
                text = f"[{name}] '{shorten(value)}' is not in '{key[1:]}'"
                self.add(inner, text, _where_else(key[1:], value))
            except DialogError as error:  # The entry point of a package is broken.
                self.add(inner, str(error))
        return None

    def _check_arguments(self, path: KeyPath, block: Dict[str, Any], info: FunctionInfo) -> None:
        """Unknown, missing and wrong arguments of one block, and all blocks in it."""
        name = ".".join(path)
        filled = info.positional(block.get("*", {}))
        misspelt: Set[str] = set()
        for key, value in block.items():
            inner = (*path, key)
            if key.startswith("@"):
                continue
            if key == "*":
                self._check_group(inner, value, info)
            elif key in info.arguments:
                if key in filled:
                    text = f"[{name}] '{key}' is filled by the first blocks of [{name}.*] already"
                    self.add(inner, text, info.hint(key))
                self._check_value(inner, value, info.arguments[key].annotation, info)
                if self.is_sound(inner) and (wanted := out_of_range(info, key, value)):
                    text = f"[{name}] '{key}' of {info.name} should be {wanted}"
                    self.add(inner, f"{text}, got {show_value(value)}", info.hint(key))
            elif not info.takes_any:
                hint = close_to(key, info.arguments) or f"it takes no arguments, see {info.where}"
                misspelt.update(name for name in info.arguments if f"'{name}'?" in hint)
                if info.keywords and "?" not in hint:
                    # It would take a misspelt name, too.
                    rest = f"**{info.keywords} ({info.where})"
                    hint = f"name it beside {rest}: a config gives only names"
                self.add(inner, f"[{name}] {info.name} has no argument '{key}'", hint)
        for key, argument in info.arguments.items():
            if argument.default is REQUIRED and key not in {*block, *filled, *misspelt}:
                text = f"[{name}] '{key}' of {info.name} is missing"
                self.add(path, text, info.hint(key))

    def _check_group(self, path: KeyPath, value: Any, info: FunctionInfo) -> None:
        name = ".".join(path[:-1])
        if not isinstance(value, dict):
            self.add(path, f"[{name}] '*' should hold sections [{name}.*.NAME]")
            return
        names = info.positional(value)
        if len(value) > len(names) and info.variadic is None:
            text = f"[{name}] {info.name} takes {len(names)} positional blocks, got {len(value)}"
            self.add(path, text, f"see {info.where}")
        annotations = [info.arguments[argument].annotation for argument in names]
        annotations += [info.variadic] * (len(value) - len(names))
        for (key, element), annotation in zip(value.items(), annotations):
            self._check_value((*path, key), element, annotation, info)

    def _check_value(self, path: KeyPath, value: Any, annotation: Any, info: FunctionInfo) -> None:
        if path in self.unresolved:
            return
        if is_block(value):
            self.check_block(path, value)
        elif is_group(value):
            if not accepts_list(annotation):
                self._add_mismatch(path, f"a list [{'.'.join(path)}.*]", annotation, info)
            for key, element in value["*"].items():
                self._check_value((*path, "*", key), element, element_type(annotation), info)
        elif any(is_block(part) or is_group(part) for part in parts_of(value)):
            # The parts are checked alone: what they will be is not known yet.
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, element in items:
                self._check_value((*path, str(key)), element, element_type(annotation), info)
        elif not fits(value, annotation):
            if not any(found[: len(path)] == path for found in self.unresolved):
                self._add_mismatch(path, show_value(value), annotation, info, value)

    def _add_mismatch(
        self, path: KeyPath, shown: str, annotation: Any, info: FunctionInfo, value: Any = None
    ) -> None:
        section, key = ".".join(path[:-1]), path[-1]
        text = f"[{section}] '{key}' of {info.name} should be {describe(annotation)}, got {shown}"
        hint = value_hint(value, annotation) or info.hint(key)
        if takes_nothing(annotation):
            hint = f"no value is one: annotate int, float or bool there ({info.where})"
        self.add(path, text, hint)


def _where_else(registry_name: str, name: str) -> str:
    """A hint for a name that is not in a registry."""
    registries = registry.all_registries()
    for other, known in registries.items():
        if name in known:
            return f"it is in '{other}': write @{other} = \"{name}\""
    close = close_functions(name, registries[registry_name].get_all())
    if close:
        return f"did you mean '{close[0]}'?"
    return (
        "a function of yours needs --code FILE; see all: "
        f"python -m thincdialog find-function --list {registry_name}"
    )
