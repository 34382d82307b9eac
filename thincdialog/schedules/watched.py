"""Checks of the values of custom schedules."""

import math
from numbers import Real
from typing import Any, Callable, Iterator

from ..contract import CodeError, place_of, wrong_value
from ..registry import registry


def watch_schedule(schedule: Any, function: Callable) -> Any:
    """Return a custom function's schedule, with a check that each value is a number.

    schedule (Iterator): A schedule that depends on scores (see ``optimizers.scored_schedules``) is
        returned unchanged.
    RAISES (CodeError): When the schedule is read, if a value is not a number, or if the schedule
        yields no value.
    """
    return schedule if hasattr(schedule, "see") else _numbers(schedule, function)


def _numbers(schedule: Iterator[Any], function: Callable) -> Iterator[Any]:
    is_empty = True
    for value in schedule:
        if not isinstance(value, Real) or not 0 <= float(value) < math.inf:
            wanted = "an iterator of numbers, 0 or more; this is one of them"
            raise wrong_value(function, value, wanted)
        is_empty = False
        yield value
    if is_empty:
        raise CodeError(f"{place_of(function)} returned a schedule that yields no number")


registry.schedules.makes(Iterator, watch_schedule)
