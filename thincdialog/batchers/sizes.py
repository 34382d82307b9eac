"""Sizes of batches: one number, or a schedule with a number for each batch."""

from array import array
from numbers import Integral, Real
from threading import Lock
from typing import Any, Iterator, List, Union

import numpy as np

from ..errors import ConfigError, Problem

SizeT = Union[int, Iterator]

# Largest size: far more than fits into memory, and small enough for products to fit into 64 bits.
MAX_SIZE = 10**12


class Sizes:
    """Look up the size of a batch at each step.

    size (SizeT): A number, or a schedule: an iterator of numbers, such as Thinc's
        ``compounding.v1``. Numbers are rounded down. After the end of a schedule, its last number
        is used.
    name (str): Description of the size, for error messages.
    RAISES (ConfigError): If the size, or the first size of a schedule, is not a number of 1 or
        more.
    """

    def __init__(self, size: SizeT, name: str = "the size of batches"):
        self.name = name
        self.is_constant = isinstance(size, Integral) or not hasattr(size, "__iter__")
        self._schedule: Iterator = iter([size] if self.is_constant else size)  # type: ignore
        # A schedule yields each value once, but several worlds use it.
        self._values = array("q")
        self._read(1)
        if not self._values:
            raise ConfigError([Problem("", f"{name}: the schedule is empty")])

    def at(self, step: int) -> int:
        """Return the size at a step.

        step (int): Number of the batch, counted from 0.
        RAISES (ConfigError): If the schedule yields anything other than a number of 1 or more.
        """
        return int(self.next(step, 1)[0])

    def next(self, step: int, n_steps: int) -> np.ndarray:
        """Return the sizes at consecutive steps; shape (n_steps,), int64.

        step (int): Number of the first batch, counted from 0.
        n_steps (int): Number of batches.
        RAISES (ConfigError): If the schedule yields anything other than a number of 1 or more.
        """
        self._read(step + n_steps)
        known = self._values[step : step + n_steps]
        sizes = np.full(n_steps, self._values[-1], dtype=np.int64)
        sizes[: len(known)] = known
        return sizes

    def _read(self, n_values: int) -> None:
        """Read values of the schedule until there are ``n_values``, or until the schedule ends."""
        values = self._values
        while len(values) < n_values:
            with _READING:
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
# Only one thread at a time may advance a schedule. All objects share one lock, because batchers are
# copied, and a lock cannot be.
_READING = Lock()


def check_size(name: str, key: str, size: SizeT, buffer: int = 1) -> Sizes:
    """Return the sizes of a registered batcher.

    name (str): Registered name of the batcher, for error messages.
    key (str): Name of the argument for the size.
    size (SizeT): Value of this argument.
    buffer (int): The batcher's ``buffer``, which is checked, too.
    RAISES (ConfigError): If the size or the buffer is not a number of 1 or more.
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
