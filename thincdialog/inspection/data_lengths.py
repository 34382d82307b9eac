"""Lengths of texts, as counts of each length."""

from collections import Counter
from dataclasses import dataclass
from typing import Iterable, List, Tuple

# First and last length of a bin, and how many there are.
Bin = Tuple[int, int, int]


@dataclass(frozen=True)
class Lengths:
    """What a report says of some lengths.

    mean (float): Of all.
    median (int): Half are no longer.
    most_95 (int): 95 of 100 are no longer.
    longest (int): The longest of all.
    histogram (List[Bin]): Bins that double: 0, 1, 2, 3-4, 5-8, ...; none beyond the
        longest.
    """

    mean: float
    median: int
    most_95: int
    longest: int
    histogram: List[Bin]


class LengthCounts:
    """Counts of lengths; memory for the different ones only."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def add(self, length: int) -> None:
        """Count one more, 0 or more."""
        self.counts[length] += 1

    def add_all(self, lengths: Iterable[int]) -> None:
        """Count more, each 0 or more."""
        self.counts.update(lengths)

    def share_over(self, limit: int) -> float:
        """The share of lengths greater than a limit, 0.0 to 1.0."""
        n_over = sum(count for length, count in self.counts.items() if length > limit)
        return n_over / max(1, self.counts.total())

    def summary(self) -> Lengths:
        """RETURNS (Lengths): All 0 if nothing was counted."""
        total = self.counts.total()
        in_order = sorted(self.counts)
        summed = sum(length * count for length, count in self.counts.items())
        return Lengths(
            summed / max(1, total),
            self._quantile(in_order, 0.5),
            self._quantile(in_order, 0.95),
            in_order[-1] if in_order else 0,
            self._histogram(),
        )

    def _quantile(self, in_order: List[int], share: float) -> int:
        wanted = share * self.counts.total()
        n_upto = 0
        for length in in_order:
            n_upto += self.counts[length]
            if n_upto >= wanted:
                return length
        return 0

    def _histogram(self) -> List[Bin]:
        bins: Counter[int] = Counter()
        for length, count in self.counts.items():
            bins[bin_of(length)] += count
        return [(*bounds_of(number), bins[number]) for number in range(max(bins, default=-1) + 1)]


def bin_of(length: int) -> int:
    """Number of the bin that a length falls into."""
    return 0 if length <= 0 else (length - 1).bit_length() + 1


def bounds_of(number: int) -> Tuple[int, int]:
    """First and last length of a bin."""
    if number < 2:
        return number, number
    return (1 << (number - 2)) + 1, 1 << (number - 1)
