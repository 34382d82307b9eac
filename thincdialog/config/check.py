"""Finds everything that is wrong with a config, before anything is built or read."""

from typing import Any, Dict, List, Optional, Set

import catalogue

from ..errors import DialogError, Problem
from ..registry import registry
from .annotations import describe, fits
from .blocks import check_arguments, is_block
from .functions import FunctionInfo, describe_function
from .mixture import check_task_names, check_weights
from .reading import Reading, default_source
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
from .values import shorten, show_value
from .variables import Path, variables_in


class Checker:
    """Walks a config whose variables are filled in.

    data (Dict[str, Any]): Nested sections, variables filled in.
    unresolved (Set[Path]): Values that are not known for want of a variable.
    """

    def __init__(self, reading: Reading, data: Dict[str, Any], unresolved: Set[Path]):
        self.reading = reading
        self.data = data
        self.unresolved = unresolved
        self.problems: List[Problem] = []
        # Blocks in whose subtree nothing was wrong can be built on trial.
        self.bad_paths: Set[Path] = set()

        # Blocks whose function is known.
        self.checked_blocks: Set[Path] = set()

    def add(self, path: Path, text: str, hint: str = "") -> None:
        self.bad_paths.add(path)
        self.problems.append(Problem(self.reading.where(*path), text, hint))

    def is_sound(self, path: Path) -> bool:
        """Whether nothing at or below a path was wrong or is unknown."""
        bad = self.bad_paths | self.unresolved
        return not any(found[: len(path)] == path for found in bad)

    def is_sound_block(self, path: Path) -> bool:
        """Whether a block can be built."""
        return path in self.checked_blocks and self.is_sound(path)

    def is_unknown(self, path: Path) -> bool:
        """Whether something at or below a path is not known for want of a variable."""
        return any(found[: len(path)] == path for found in self.unresolved)

    def check_all(self) -> None:
        for name, section in self.data.items():
            if name not in SECTION_ORDER:
                hint = ELSEWHERE.get(name) or close_to(name, SECTION_ORDER)
                self.add((name,), f"there is no section [{name}]", hint)
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
        used = set(variables_in(self.reading.data))
        for key, value in section.items():
            path = ("paths", key)
            name = f"paths.{key}"
            if not (fits(value, PATH) or fits(value, PATHS)) and path not in self.unresolved:
                text = f"[paths] '{key}' should be a string or null, got {show_value(value)}"
                self.add(path, text)
            elif name in self.reading.overrides and name not in used and "paths" not in used:
                keys = [n.split(".", 1)[1] for n in sorted(used) if n.startswith("paths.")]
                hint = close_to(key, keys) or "it holds no ${paths...} at all"
                self.add(path, f"the config uses '${{{name}}}' nowhere", hint)

    def _check_settings(self, path: Path, section: Dict[str, Any]) -> None:
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

    def _check_setting(self, path: Path, value: Any, setting: Setting) -> None:
        section, key = path[:-1], path[-1]
        if ".".join(path) == WEIGHTS and isinstance(value, dict):
            return  # check_weights() looks at each of them.
        wanted = describe(setting.annotation)
        least, most = setting.least, setting.most
        if least is not None:
            wanted += f", {least:g} or more" if most is None else f", {least:g} to {most:,g}"
        if fits(value, setting.annotation):
            if (least is None or value >= least) and (most is None or value <= most):
                return
            hint = ""
        else:
            hint = value_hint(value, setting.annotation)
        comments = default_source().sections[".".join(section)].entries[key].comments
        about = " ".join(line.lstrip("# ") for line in comments)
        text = f"[{'.'.join(section)}] '{key}' should be {wanted}, got {show_value(value)}"
        self.add(path, text, hint or about.rstrip("."))

    def _check_blocks(self, path: Path, section: Any, blocks: Blocks) -> None:
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

    def check_block(self, path: Path, block: Dict[str, Any], wanted: str = "") -> None:
        """Check a block that a registered function builds, and all blocks in it.

        wanted (str): The registry the function must come from; "" for any.
        """
        info = self._function_of(path, block, wanted)
        if info is not None:
            self.checked_blocks.add(path)
            check_arguments(self, path, block, info)
            return
        for key, value in block.items():
            if is_block(value):
                self.check_block((*path, key), value)

    def _function_of(
        self, path: Path, block: Dict[str, Any], wanted: str
    ) -> Optional[FunctionInfo]:
        name = ".".join(path)
        references = [key for key in block if key.startswith("@")]
        if not references:
            text = f"[{name}] does not say what builds it"
            self.add(path, text, f'add: @{wanted} = "..."')
            return None
        if len(references) > 1:
            self.add((*path, references[1]), f"[{name}] holds both {' and '.join(references)}")
            return None
        key = references[0]
        value = block[key]
        registries = registry.all_registries()
        if (*path, key) in self.unresolved:
            return None
        if key[1:] not in registries:
            hint = close_to(key[1:], registries).replace("'", "'@", 1)
            self.add((*path, key), f"[{name}] there is no registry '{key}'", hint)
        elif not isinstance(value, str):
            self.add((*path, key), f"[{name}] '{key}' should be a name, got {show_value(value)}")
        elif wanted and key[1:] != wanted:
            text = f"[{name}] is built by '@{wanted}', got '{key}'"
            self.add((*path, key), text, f'write @{wanted} = "..."')
        elif self._is_registered((*path, key), key[1:], value):
            return describe_function(key[1:], value)
        return None

    def _is_registered(self, path: Path, registry_name: str, name: str) -> bool:
        try:
            registry.get(registry_name, name)
            return True
        except catalogue.RegistryError:
            pass
        except DialogError as error:  # The entry point of a package is broken.
            self.add(path, str(error))
            return False
        registries = registry.all_registries()
        elsewhere = [other for other, known in registries.items() if name in known]
        if elsewhere:
            hint = f"it is in '{elsewhere[0]}': write @{elsewhere[0]} = \"{name}\""
        else:
            close = close_functions(name, registries[registry_name].get_all())
            hint = (
                f"did you mean '{close[0]}'?"
                if close
                else (
                    "a function of yours needs --code FILE; see all: "
                    f"python -m thincdialog find-function --list {registry_name}"
                )
            )
        text = f"[{'.'.join(path[:-1])}] '{shorten(name)}' is not in '{registry_name}'"
        self.add(path, text, hint)
        return False
