"""A sum of floats without rounding, which does not depend on the order of additions."""

from typing import Any, Iterable, List

# Every finite double is an integer multiple of 2 ** -1074, the smallest positive double.
EXPONENT = 1074


class ExactSum:
    """Hold an exact sum of numbers as one integer in units of 2 ** -1074.

    Two sums of the same numbers are equal bit for bit, in any order and with any partial sums.
    Infinities and NaN are summed separately, and replace the finite part in the result.

    units (int): The finite part, in units of 2 ** -1074.
    special (float): Sum of the infinities and NaN, else 0.0.
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
        """Return the exact value, as JSON values."""
        return [self.units, self.special]

    def restore(self, state: List[Any]) -> None:
        """Restore a value from ``state``."""
        self.units, self.special = int(state[0]), float(state[1])

    def __add__(self, other: "ExactSum") -> "ExactSum":
        """Return the sum of both, which are not changed."""
        total = ExactSum()
        total.units, total.special = self.units + other.units, self.special + other.special
        return total

    def __truediv__(self, other: "ExactSum") -> float:
        """Return the quotient of the exact values, rounded once.

        RAISES (ZeroDivisionError): If ``other`` is zero.
        """
        if self.special or other.special:
            return float(self) / float(other)
        try:
            return self.units / other.units
        except OverflowError:
            return float("inf") if (self.units < 0) == (other.units < 0) else float("-inf")

    def __float__(self) -> float:
        """Return the exact value, rounded once to the nearest double."""
        return self.special or self / _ONE  # NaN is truthy, too.

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactSum):
            return NotImplemented
        return self.units == other.units and repr(self.special) == repr(other.special)

    def __bool__(self) -> bool:
        return bool(self.units or self.special)

    def __repr__(self) -> str:
        return f"ExactSum({float(self)!r})"


_ONE = ExactSum(1)


def exact_sum(values: Iterable[float]) -> ExactSum:
    """Return the exact sum of numbers."""
    total = ExactSum()
    for value in values:
        total.add(value)
    return total
