"""Schedules of users: each value is looked at."""

import math
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
        if not isinstance(value, Real) or not 0 <= float(value) < math.inf:
            wanted = "an iterator of numbers, 0 or more; this is one of them"
            raise wrong_value(function, value, wanted)
        yield value


registry.schedules.makes(Iterator, watch_schedule)
