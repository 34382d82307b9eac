"""A sum of floats without rounding, so that the order of adding never matters."""

from typing import Any, Iterable, List

# Every finite double is a whole number of 2 ** -1074, the smallest positive one.
EXPONENT = 1074


class ExactSum:
    """An exact sum of numbers, held as one integer in units of 2 ** -1074.

    Two sums of the same numbers are equal bit for bit, in whatever order and through whatever
    partial sums they were made. Infinities and NaN are kept apart and win.

    units (int): The finite part, in units of 2 ** -1074.
    special (float): Sum of what was infinite or NaN, else 0.0.
    """

    __slots__ = ("units", "special")

    def __init__(self, value: Any = 0):
        self.units = 0
        self.special = 0.0
        self.add(value)

    def add(self, value: Any) -> None:
        """Add a number: int, float, or a NumPy or CuPy scalar."""
        if isinstance(value, int):
            self.units += value << EXPONENT
            return
        if not isinstance(value, float):
            value = value.item()
        try:
            numerator, denominator = value.as_integer_ratio()
        except (OverflowError, ValueError):
            self.special += value
        else:
            # The denominator is 2 ** k, so its bit length is k + 1.
            self.units += numerator << (EXPONENT + 1 - denominator.bit_length())

    def state(self) -> List[Any]:
        """The exact value, as JSON values."""
        return [self.units, self.special]

    def restore(self, state: List[Any]) -> None:
        """Take the value that ``state`` gave."""
        self.units, self.special = int(state[0]), float(state[1])

    def __add__(self, other: "ExactSum") -> "ExactSum":
        """The sum of both; changes neither."""
        total = ExactSum()
        total.units, total.special = self.units + other.units, self.special + other.special
        return total

    def __truediv__(self, other: "ExactSum") -> float:
        """The quotient of the exact values, rounded once.

        RAISES (ZeroDivisionError): If ``other`` is zero.
        """
        if self.special or other.special:
            return float(self) / float(other)
        try:
            return self.units / other.units
        except OverflowError:
            return float("inf") if (self.units < 0) == (other.units < 0) else float("-inf")

    def __float__(self) -> float:
        """The exact value, rounded once to the nearest double."""
        if self.special:  # NaN is true, too
            return self.special
        try:
            return self.units / (1 << EXPONENT)
        except OverflowError:
            return float("inf") if self.units > 0 else float("-inf")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactSum):
            return NotImplemented
        return self.units == other.units and repr(self.special) == repr(other.special)

    def __bool__(self) -> bool:
        return bool(self.units or self.special)

    def __repr__(self) -> str:
        return f"ExactSum({float(self)!r})"


def exact_sum(values: Iterable[float]) -> ExactSum:
    """The sum of some numbers."""
    total = ExactSum()
    for value in values:
        total.add(value)
    return total
