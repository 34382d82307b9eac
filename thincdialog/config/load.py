"""Complete and check a user's config, and build its objects."""

import math
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any, Dict, List, Sequence, Tuple, Union

from confection import Config

from ..errors import ConfigError, Problem
from ..registry import registry
from .blocks import fill_functions
from .check import Checker
from .collate import add_collate
from .given import ConfigLike, GivenConfig, Overrides, read_config
from .variables import fill_variables


@dataclass(frozen=True)
class CheckedConfig:
    """Hold a config that has passed the check.

    config (Config): The config with every setting and every argument; variables as written.
    interpolated (Config): The complete config with its variables filled in.
    given (GivenConfig): The config as the user wrote it, with the place of each part.
    """

    config: Config
    interpolated: Config
    given: GivenConfig

    @property
    def name(self) -> str:
        """Name of the config in messages: its path as the user gave it."""
        return self.given.name

    def where(self, *path: str) -> str:
        """Return the place of a section or key, or of a section around it: ``file.cfg:41``,
        ``--a.b``."""
        return self.given.where(*path)

    def error(self, text: str, hint: str, *path: str) -> ConfigError:
        """Make the error for a mistake in the config that is found only when it is used.

        text, hint (str): As in a ``Problem``.
        path (str): As for ``where``.
        """
        return ConfigError([Problem(self.where(*path), text, hint)], self.name)


# A config to read, or one that has been read.
AnyConfig = Union[ConfigLike, CheckedConfig]


def load_config(
    config: AnyConfig,
    overrides: Overrides = None,
    without: Sequence[str] = (),
    only: Sequence[str] = (),
) -> CheckedConfig:
    """Read, complete and check a config, without keeping objects or reading data.

    config (ConfigLike): A path, a config's text, a Config or a dict.
    overrides (Optional[Mapping[str, Any]]): Dotted name to value, applied last; strings are parsed
        as JSON if possible.
    without (Sequence[str]): Sections to leave out, such as those of earlier versions.
    only (Sequence[str]): Sections to check; all if empty. Other sections may name missing
        functions.
    RETURNS (CheckedConfig): The complete config.
    RAISES (ConfigError): If there are problems; the error lists all of them.
    """
    if isinstance(config, CheckedConfig) and not overrides:
        return config
    checked, problems = _read_and_check(config, overrides, without, only)
    if problems:
        raise ConfigError(problems, checked.name)
    return checked


def check_config(config: AnyConfig, overrides: Overrides = None) -> List[Problem]:
    """Return all problems of a config, including those found only when its blocks are built.

    config (ConfigLike): As for ``load_config``.
    RETURNS (List[Problem]): The problems; empty if there are none.
    """
    try:
        return _read_and_check(config, overrides, build=True)[1]
    except ConfigError as error:
        return error.problems


def read_sections(config: ConfigLike) -> Dict[str, Any]:
    """Return the nested sections of a config without checking them, for example to inspect the
    config of another run. Blocks of known functions are completed.

    RAISES (ConfigError): If the config cannot be read.
    """
    given = read_config(config)
    if given.problems:
        raise ConfigError(given.problems, given.name)
    return fill_variables(given, fill_functions(given.data))


def resolve_config(checked: CheckedConfig) -> Dict[str, Any]:
    """Build the objects of all sections, without reading data.

    checked (CheckedConfig): A config that ``load_config`` returned.
    RETURNS (Dict[str, Any]): ``paths`` and ``system`` (dicts); ``tasks`` (name to teacher);
        ``tokenizer`` (None if there is none); ``agent``; ``world`` (a function of teacher and
        agent); ``mixture`` (its settings); ``evaluation`` (its settings; ``world``, which is that
        of the whole config by default; and ``metrics``, a list); ``training`` (its settings,
        ``optimizer``, ``logger``, and ``callbacks``, a list); ``baselines`` (name to agent).
    RAISES (ConfigError): If a registered function refuses its arguments.
    """
    sections = build_sections(checked)
    sections.setdefault("tokenizer", None)
    sections.setdefault("baselines", {})
    evaluation, training = sections["evaluation"], sections["training"]
    evaluation["world"] = evaluation.get("world") or sections["world"]
    evaluation["metrics"] = list(evaluation["metrics"].values())
    training["callbacks"] = list(training.get("callbacks", {}).values())
    return sections


def build_sections(checked: CheckedConfig, only: Sequence[str] = ()) -> Dict[str, Any]:
    """Build the objects of the sections ``only``, or of all sections if it is empty.

    RAISES (ConfigError): If a registered function refuses its arguments.
    """
    builder = Checker(checked.given, checked.interpolated.copy(), builds=True)
    sections = builder.check_all(only)
    if builder.problems:
        cause = builder.causes[0] if builder.causes else None
        raise ConfigError(builder.problems, checked.name) from cause
    return sections


def build_block(checked: CheckedConfig, name: str) -> Any:
    """Build one block again, and return a new object equal to that of ``resolve_config``.

    name (str): Dotted name of the block, such as "training.optimizer".
    """
    path, data = tuple(name.split(".")), checked.interpolated.copy()
    return Checker(checked.given, data, builds=True).check_block(path, reduce(getitem, path, data))


def _read_and_check(
    config: AnyConfig,
    overrides: Overrides,
    without: Sequence[str] = (),
    only: Sequence[str] = (),
    build: bool = False,
) -> Tuple[CheckedConfig, List[Problem]]:
    """Read, complete and check a config, and return it with its problems.

    build (bool): Whether to also build the blocks of a config without mistakes.
    """
    registry.ensure_populated()
    given = read_config(config.config if isinstance(config, CheckedConfig) else config, overrides)
    for name in without:
        given.data.pop(name, None)
    complete = fill_functions(given.data)
    data = fill_variables(given, complete)
    checker = Checker(given, data)
    checker.check_all(only)
    problems = [*given.problems, *checker.problems]
    # Paths may be part of a checked setting, and ``predict`` reads its input as the tasks do.
    used = (*only, "paths", "tasks")
    for name in given.overrides if only else ():
        if name.split(".")[0] not in used:
            text = f"'{name}' has no effect on a saved model that answers"
            hint = f"set only {', '.join(f'[{each}]' for each in used)}"
            problems.append(Problem(f"--{name}", text, hint))
    if not problems and not only:
        problems = add_collate(given, complete, data)
    if problems or build:
        # Building the blocks also detects values that a function refuses.
        builder = Checker(given, data, builds=True)
        builder.check_all(only)
        problems += builder.problems
    checked = CheckedConfig(Config(complete, is_interpolated=False), Config(data), given)

    def order(problem: Problem) -> float:
        """Return the line of a problem. Problems without a line in the file are last."""
        line = problem.line
        return math.inf if line is None or problem.where != f"{given.name}:{line}" else line

    # List each problem only once.
    return checked, sorted(dict.fromkeys(problems), key=order)
