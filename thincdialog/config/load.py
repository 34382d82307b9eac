"""From a config as a user writes it to one that is complete and free of mistakes."""

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from confection import Config

from ..errors import ConfigError, Problem
from ..registry import registry
from .build import Builder
from .check import Checker
from .fill import fill_functions
from .reading import ConfigLike, Reading, read_config
from .schemas import SECTION_ORDER
from .variables import fill_variables


@dataclass(frozen=True)
class CheckedConfig:
    """A config in which nothing was found wrong.

    config (Config): Complete: every setting and every argument; variables as written.
    interpolated (Config): The same with the variables filled in.
    reading (Reading): Where each part stands, and what the user wrote.
    """

    config: Config
    interpolated: Config
    reading: Reading

    @property
    def name(self) -> str:
        """What to call the config in messages: its path as the user gave it."""
        return self.reading.name

    @property
    def locations(self) -> Dict[str, str]:
        """Dotted name of each section and key to ``file.cfg:41`` or ``--a.b``."""
        return self.reading.locations


def load_config(
    config: Union[ConfigLike, CheckedConfig],
    overrides: Optional[Mapping[str, Any]] = None,
    without: Sequence[str] = (),
) -> CheckedConfig:
    """Read, complete and check a config. Builds nothing that is kept, reads no data.

    config (ConfigLike): A path, a config's text, a Config or a dict.
    overrides (Optional[Mapping[str, Any]]): Dotted name to value, applied last;
        strings are read as JSON if they are JSON.
    without (Sequence[str]): Sections to leave out, such as some of earlier versions.
    RETURNS (CheckedConfig): The complete config.
    RAISES (ConfigError): With every problem that was found.
    """
    if isinstance(config, CheckedConfig):
        if not overrides:
            return config
        config = config.config
    checked, problems = _read_and_check(config, overrides, without)
    if problems:
        raise ConfigError(problems, checked.name)
    return checked


def check_config(
    config: Union[ConfigLike, CheckedConfig], overrides: Optional[Mapping[str, Any]] = None
) -> List[Problem]:
    """All problems of a config, those included that only building its blocks shows.

    config (ConfigLike): As for ``load_config``.
    RETURNS (List[Problem]): Empty if the config is good.
    """
    if isinstance(config, CheckedConfig):
        config = config.config
    try:
        checked, problems = _read_and_check(config, overrides)
    except ConfigError as error:
        return error.problems
    if not problems:
        builder = Builder(checked.reading)
        builder.build_section((), checked.interpolated)
        problems = builder.problems
    return problems


def _read_and_check(
    config: ConfigLike, overrides: Optional[Mapping[str, Any]], without: Sequence[str] = ()
) -> Tuple[CheckedConfig, List[Problem]]:
    registry.ensure_populated()
    reading = read_config(config, overrides)
    for name in without:
        reading.data.pop(name, None)
    problems = list(reading.problems)
    complete = fill_functions(reading.data)
    data, mistakes, unresolved = fill_variables(complete)
    for path, text, hint in mistakes:
        where = reading.where(*path)
        problems.append(Problem(where, f"[{'.'.join(path[:-1])}] '{path[-1]}' {text}", hint))
    unresolved |= reading.unreadable
    checker = Checker(reading, data, unresolved)
    checker.check_all()
    problems += checker.problems
    if problems:
        # So that values out of a function's range are shown along with the rest.
        builder = Builder(reading)
        builder.build_sound_blocks((), data, checker.is_sound_block)
        problems += builder.problems
    order = list(SECTION_ORDER)
    checked = CheckedConfig(
        Config(complete, is_interpolated=False, section_order=order),
        Config(data, is_interpolated=True, section_order=order),
        reading,
    )
    return checked, _in_order(problems, reading)


def _in_order(problems: List[Problem], reading: Reading) -> List[Problem]:
    """By line, with those that stand in no file last; each only once."""

    def line(problem: Problem) -> Tuple[bool, int]:
        name, _, number = problem.where.rpartition(":")
        is_line = name == reading.name and number.isdigit()
        return (not is_line, int(number) if is_line else 0)

    return sorted(dict.fromkeys(problems), key=line)
