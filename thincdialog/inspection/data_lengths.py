"""LengthSurvey of texts, from counts of each length."""

from collections import Counter
from dataclasses import dataclass
from typing import List, Tuple

import numpy as np

# First and last length of a bin, and how many there are.
Bin = Tuple[int, int, int]


@dataclass(frozen=True)
class LengthSurvey:
    """What a report says of some lengths.

    mean (float): Of all.
    median (int): Half are no longer.
    most_95 (int): 95 of 100 are no longer.
    longest (int): The longest of all.
    histogram (List[Bin]): Bins that double, up to the longest: 0, 1, 2, 3-4, 5-8, ...
    """

    mean: float
    median: int
    most_95: int
    longest: int
    histogram: List[Bin]

    @classmethod
    def of(cls, counts: "Counter[int]") -> "LengthSurvey":
        """From how often each length occurs; one does."""
        lengths = np.array(sorted(counts))
        upto = np.cumsum([counts[length] for length in lengths.tolist()])
        median, most_95 = (
            lengths[np.searchsorted(upto, share * upto[-1])] for share in (0.5, 0.95)
        )
        bins: Counter[int] = Counter()
        for length, count in counts.items():
            bins[bin_of(length)] += count
        return cls(
            sum(length * count for length, count in counts.items()) / int(upto[-1]),
            int(median),
            int(most_95),
            int(lengths[-1]),
            [(*bounds_of(number), bins[number]) for number in range(max(bins) + 1)],
        )


def bin_of(length: int) -> int:
    """Number of the bin that a length falls into."""
    return 0 if length <= 0 else (length - 1).bit_length() + 1


def bounds_of(number: int) -> Tuple[int, int]:
    """First and last length of a bin."""
    if number < 2:
        return number, number
    return (1 << (number - 2)) + 1, 1 << (number - 1)
