"""Schedules of users: each value is looked at."""

from numbers import Real
from types import GeneratorType
from typing import Any, Callable, Iterator

from ..contract import wrong_value
from ..registry import registry


def watch_schedule(schedule: Any, function: Callable) -> Any:
    """The schedule of a user's function, which refuses what is no number.

    RAISES (CodeError): When such a value is asked for.
    """
    return _numbers(schedule, function) if isinstance(schedule, GeneratorType) else schedule


def _numbers(schedule: Iterator[Any], function: Callable) -> Iterator[Any]:
    for value in schedule:
        if not isinstance(value, Real):
            raise wrong_value(function, value, "an iterator of numbers; this is one of them")
        yield value


registry.schedules.makes(Iterator, watch_schedule)
