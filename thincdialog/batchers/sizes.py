"""Sizes of batches: one number, or a schedule that gives one for each batch."""

from array import array
from numbers import Integral, Real
from threading import Lock
from typing import Any, Iterator, List, Union

import numpy as np

from ..errors import ConfigError, Problem

SizeT = Union[int, Iterator]

# Far beyond what fits into memory, and small enough to multiply.
MAX_SIZE = 10**12


class Sizes:
    """The size at each step.

    size (SizeT): A number, or a schedule: an iterator of numbers, such as Thinc's
        ``compounding.v1``. The whole part counts; a schedule that ends keeps its last number.
    name (str): What the size is, for errors.
    RAISES (ConfigError): If the size, or a schedule's first, is no number or less than 1.
    """

    def __init__(self, size: SizeT, name: str = "the size of batches"):
        self.name = name
        self.is_constant = isinstance(size, Integral) or not hasattr(size, "__iter__")
        self._schedule: Iterator = iter([size] if self.is_constant else size)  # type: ignore
        # A schedule gives each value once, but several worlds ask.
        self._values = array("q")
        self._read(1)
        if not self._values:
            raise ConfigError([Problem("", f"{name}: the schedule is empty")])

    def at(self, step: int) -> int:
        """The size of the batch with this number, counted from 0.

        RAISES (ConfigError): If the schedule gives no number or less than 1.
        """
        self._read(step + 1)
        return self._values[min(step, len(self._values) - 1)]

    def next(self, step: int, n_steps: int) -> np.ndarray:
        """The sizes of some batches, the first with this number; shape (n_steps,), int64.

        RAISES (ConfigError): If the schedule gives no number or less than 1.
        """
        self._read(step + n_steps)
        known = self._values[step : step + n_steps]
        sizes = np.full(n_steps, self._values[-1], dtype=np.int64)
        sizes[: len(known)] = known
        return sizes

    def _read(self, n_values: int) -> None:
        if len(self._values) < n_values:
            with _READING:
                self._read_on(n_values)

    def _read_on(self, n_values: int) -> None:
        values = self._values
        while len(values) < n_values:
            value = next(self._schedule, _END)
            if value is _END:
                return
            kind = Integral if self.is_constant else Real
            is_number = isinstance(value, kind) and not isinstance(value, bool)
            if not is_number or not 1 <= value <= MAX_SIZE:
                what = "is" if self.is_constant else f"at batch {len(values)} is"
                hint = f"give whole numbers of at least 1, and at most {MAX_SIZE:,}"
                hint = hint if is_number and value > 1 else hint.partition(",")[0]
                raise ConfigError([Problem("", f"{self.name} {what} {value!r}", hint)])
            values.append(int(value))


_END: Any = object()
# A schedule runs for one thread at a time. (One lock for all, as batchers are copied.)
_READING = Lock()


def check_size(name: str, key: str, size: SizeT, buffer: int = 1) -> Sizes:
    """The sizes of a registered batcher.

    name (str): Its registered name, for the error.
    key (str): Name of the argument.
    RAISES (ConfigError): If the size or the buffer is no number or less than 1.
    """
    problems: List[Problem] = []
    if not isinstance(buffer, Integral) or isinstance(buffer, bool) or buffer < 1:
        text = f"'buffer' of {name} is {buffer!r}"
        problems.append(Problem("", text, "give a number of batches, at least 1"))
    try:
        sizes = Sizes(size, f"'{key}' of {name}")
    except ConfigError as error:
        problems = error.problems + problems
    if problems:
        raise ConfigError(problems)
    return sizes
