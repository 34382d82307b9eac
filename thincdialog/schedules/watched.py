"""Schedules of users: each value is looked at."""

import math
from numbers import Real
from typing import Any, Callable, Iterator

from ..contract import CodeError, place_of, wrong_value
from ..registry import registry


def watch_schedule(schedule: Any, function: Callable) -> Any:
    """The schedule of a user's function, which refuses what is no number.

    schedule (Iterator): One that goes by scores (see ``optimizers.scored_schedules``) is left
        as it is.
    RAISES (CodeError): When such a value is asked for, or a first one and there is none.
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
        raise CodeError(f"{place_of(function)} returned a schedule that gives no number")


registry.schedules.makes(Iterator, watch_schedule)
