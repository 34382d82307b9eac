"""Numbers that are still being computed on a device."""

import math
from typing import Any, Callable, List, Optional, Sequence, Union

Number = Union[float, "Later"]
# The largest number of values to leave unread on a device; beyond it, they are read even if
# they are not needed yet.
MOST_WAITING = 4096


class Later:
    """Hold a number on a device, such as the loss of a step. Converting it to a float waits for it;
    ``settle`` waits for many at once.

    value (Any): Device array with one number.
    error (Callable[[], Exception]): Makes the error to raise if the number is not finite. It is
        released, with everything it refers to, once the number is known to be finite.
    """

    __slots__ = ("_value", "_error")

    def __init__(self, value: Any, error: Callable[[], Exception]) -> None:
        self._value: Any = value
        self._error: Optional[Callable[[], Exception]] = error

    def __float__(self) -> float:
        return settle([self])[0]

    def __reduce__(self) -> Any:
        return float, (float(self),)


def settle(numbers: Sequence[Number]) -> List[float]:
    """Return numbers as floats; all those on a device are copied at once.

    RAISES (Exception): The error of the first number that is not finite.
    """
    waiting: List[Any] = [
        each for each in numbers if isinstance(each, Later) and not isinstance(each._value, float)
    ]
    if waiting:
        arrays = [each._value.reshape(()) for each in waiting]
        together = arrays[0].reshape(1) if len(arrays) == 1 else _stacked(arrays)
        for each, value in zip(waiting, together.get().tolist()):
            each._value = value
    for each in numbers:
        if isinstance(each, Later) and each._error is not None:
            if not math.isfinite(each._value):
                raise each._error()
            each._error = None
    return [each._value if isinstance(each, Later) else each for each in numbers]


def add_up(numbers: Sequence[Number]) -> Number:
    """Return the sum of numbers: a ``Later`` if one of them is, with the error of the first number
    that is not finite."""
    if len(numbers) == 1 and isinstance(numbers[0], Later):
        return numbers[0]
    parts = [each for each in numbers if isinstance(each, Later) and each._error]
    if not parts:
        return math.fsum(map(float, numbers))
    of_last: Any = parts[-1]._error

    def error() -> Exception:
        try:
            settle(parts)
        except Exception as of_first:
            return of_first
        return of_last()  # Each number is finite, only the sum is not.

    values = [each._value if isinstance(each, Later) else each for each in numbers]
    return Later(sum(values), error)


def _stacked(arrays: List[Any]) -> Any:
    import cupy

    with arrays[0].device:
        return cupy.stack(arrays)
