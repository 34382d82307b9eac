"""Numbers that a device knows and the host does not yet."""

import math
from typing import Any, Callable, List, Optional, Sequence, Union

Number = Union[float, "Later"]
# Numbers that wait on a device, before they are read, whether they are needed or not.
MOST_WAITING = 4096


class Later:
    """A number on a device, such as the loss of a step. Reading it as a float waits for
    it; ``settle`` waits for many at once.

    value (Any): Device array of one number.
    error (Callable[[], Exception]): The error to raise where it is not finite. Nothing that it
        holds is kept once the number is known and finite.
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
    """Numbers as floats: those on a device come in one copy.

    RAISES (Exception): The error of the first one that is not finite.
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
    """Their sum: a ``Later`` if one of them is, with the error of the first that is not finite."""
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
        return of_last()  # Each is finite, and only their sum is not.

    values = [each._value if isinstance(each, Later) else each for each in numbers]
    return Later(sum(values), error)


def _stacked(arrays: List[Any]) -> Any:
    import cupy

    with arrays[0].device:
        return cupy.stack(arrays)
