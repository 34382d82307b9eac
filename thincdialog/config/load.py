"""From a config as a user writes it to one that is complete and good, and to its objects."""

from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any, Dict, List, Sequence, Tuple, Union

from confection import Config

from ..errors import ConfigError, Problem
from ..registry import registry
from .blocks import fill_functions
from .check import Checker
from .given import ConfigLike, GivenConfig, Overrides, read_config
from .variables import fill_variables


@dataclass(frozen=True)
class CheckedConfig:
    """A config in which nothing was found wrong.

    config (Config): Complete: every setting and every argument; variables as written.
    interpolated (Config): The same with the variables filled in.
    given (GivenConfig): Where each part stands, and what the user wrote.
    """

    config: Config
    interpolated: Config
    given: GivenConfig

    @property
    def name(self) -> str:
        """What to call the config in messages: its path as the user gave it."""
        return self.given.name

    def where(self, *path: str) -> str:
        """Where a section or key stands, or what is around it: ``file.cfg:41``, ``--a.b``."""
        return self.given.where(*path)

    def error(self, text: str, hint: str, *path: str) -> ConfigError:
        """What is wrong at a place of the config that only its use shows.

        text, hint (str): As of a ``Problem``; path (str): As for ``where``.
        """
        return ConfigError([Problem(self.where(*path), text, hint)], self.name)


# What can be read, or has been.
AnyConfig = Union[ConfigLike, CheckedConfig]


def load_config(
    config: AnyConfig,
    overrides: Overrides = None,
    without: Sequence[str] = (),
    only: Sequence[str] = (),
) -> CheckedConfig:
    """Read, complete and check a config. Builds nothing that is kept, reads no data.

    config (ConfigLike): A path, a config's text, a Config or a dict.
    overrides (Optional[Mapping[str, Any]]): Dotted name to value, applied last;
        strings are read as JSON if they are JSON.
    without (Sequence[str]): Sections to leave out, such as some of earlier versions.
    only (Sequence[str]): Sections to check, if not all: others may name functions that are missing.
    RETURNS (CheckedConfig): The complete config.
    RAISES (ConfigError): With every problem that was found.
    """
    if isinstance(config, CheckedConfig) and not overrides:
        return config
    checked, problems = _read_and_check(config, overrides, without, only)
    if problems:
        raise ConfigError(problems, checked.name)
    return checked


def check_config(config: AnyConfig, overrides: Overrides = None) -> List[Problem]:
    """All problems of a config, those included that only building its blocks shows.

    config (ConfigLike): As for ``load_config``.
    RETURNS (List[Problem]): Empty if the config is good.
    """
    try:
        return _read_and_check(config, overrides, build=True)[1]
    except ConfigError as error:
        return error.problems


def read_sections(config: ConfigLike) -> Dict[str, Any]:
    """Nested sections of a config, complete as far as their functions are known, and nothing
    checked: for a look at a config of others.

    RAISES (ConfigError): If it cannot be read.
    """
    given = read_config(config)
    if given.problems:
        raise ConfigError(given.problems, given.name)
    return fill_variables(given, fill_functions(given.data))


def resolve_config(checked: CheckedConfig) -> Dict[str, Any]:
    """Build the objects of all sections. No data is read.

    checked (CheckedConfig): From ``load_config``.
    RETURNS (Dict[str, Any]): ``paths`` and ``system`` (dicts); ``tasks`` (name to teacher);
        ``tokenizer`` (None if there is none); ``agent``; ``world`` (a function of teacher and
        agent); ``mixture`` (its settings); ``evaluation`` (its settings, ``world``, its own or
        that of the whole config, and ``metrics``, a list); ``training`` (its settings,
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
    """Build the objects of some sections; of all if ``only`` is empty.

    RAISES (ConfigError): If a registered function refuses its arguments.
    """
    builder = Checker(checked.given, checked.interpolated.copy(), builds=True)
    sections = builder.check_all(only)
    if builder.problems:
        cause = builder.causes[0] if builder.causes else None
        raise ConfigError(builder.problems, checked.name) from cause
    return sections


def build_block(checked: CheckedConfig, name: str) -> Any:
    """Build one block once more: a new object, equal to the one of ``resolve_config``.

    name (str): Dotted, such as "training.optimizer".
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
    """build (bool): Whether to build the blocks of a config without mistakes, too."""
    registry.ensure_populated()
    given = read_config(config.config if isinstance(config, CheckedConfig) else config, overrides)
    for name in without:
        given.data.pop(name, None)
    complete = fill_functions(given.data)
    data = fill_variables(given, complete)
    checker = Checker(given, data)
    checker.check_all(only)
    problems = [*given.problems, *checker.problems]
    if problems or build:
        # So that values out of a function's range are shown along with the rest.
        builder = Checker(given, data, builds=True)
        builder.check_all(only)
        problems += builder.problems
    checked = CheckedConfig(Config(complete, is_interpolated=False), Config(data), given)

    def line(problem: Problem) -> Tuple[bool, int]:
        """By line, with those that stand in no file last."""
        name, _, number = problem.where.rpartition(":")
        is_line = name == given.name and number.isdigit()
        return (not is_line, int(number) if is_line else 0)

    # Each only once.
    return checked, sorted(dict.fromkeys(problems), key=line)
