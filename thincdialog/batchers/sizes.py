"""Sizes of batches: one number, or a schedule that gives one for each batch."""

from array import array
from typing import Iterator, Union

from ..errors import ConfigError, Problem

SizeT = Union[int, Iterator]


class Sizes:
    """The size at each step.

    size (SizeT): A number, or a schedule: an endless iterator of numbers, such as
        Thinc's ``compounding.v1``; of each the whole part counts.
    """

    def __init__(self, size: SizeT):
        self.is_constant = isinstance(size, int)
        self._schedule: Iterator = iter(()) if isinstance(size, int) else iter(size)
        # A schedule gives each value once, but several worlds ask.
        self._values = array("q", [size] if isinstance(size, int) else [])

    def at(self, step: int) -> int:
        """The size of the batch with this number, counted from 0.

        RAISES (ValueError): If the schedule ends, or gives less than 1.
        """
        values = self._values
        if self.is_constant:
            return values[0]
        while len(values) <= step:
            value = next(self._schedule, None)
            if value is None or not value >= 1:
                what = "has ended" if value is None else f"gives {value}"
                raise ValueError(f"the schedule of a batcher {what} at batch {len(values)}")
            values.append(int(value))
        return values[step]


def check_size(name: str, key: str, size: SizeT, buffer: int = 1) -> Sizes:
    """The sizes of a registered batcher.

    name (str): Its registered name, for the error.
    key (str): Name of the argument.
    RAISES (ConfigError): If the size or the buffer is less than 1.
    """
    sizes = Sizes(size)
    problems = []
    try:
        first = sizes.at(0)
    except ValueError as error:
        problems.append(Problem("", f"'{key}' of {name}: {error}", "begin it at 1 or more"))
    else:
        if first < 1:
            text = f"'{key}' of {name} is {first}"
            problems.append(Problem("", text, "give a number of at least 1"))
    if buffer < 1:
        text = f"'buffer' of {name} is {buffer}"
        problems.append(Problem("", text, "give a number of batches, at least 1"))
    if problems:
        raise ConfigError(problems)
    return sizes
