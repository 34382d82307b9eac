"""A survey of text lengths, computed from the count of each length."""

from collections import Counter
from dataclasses import dataclass
from typing import List, Tuple

import numpy as np

# First and last length of a bin, and the number of lengths in it.
Bin = Tuple[int, int, int]


@dataclass(frozen=True)
class LengthSurvey:
    """Describe the distribution of some lengths.

    mean (float): Mean of all lengths.
    median (int): Median of all lengths.
    most_95 (int): 95th percentile of all lengths.
    longest (int): Largest length.
    histogram (List[Bin]): Bins that double in width, up to the largest length: 0, 1, 2, 3-4, 5-8,
        ...
    """

    mean: float
    median: int
    most_95: int
    longest: int
    histogram: List[Bin]

    @classmethod
    def of(cls, counts: "Counter[int]") -> "LengthSurvey":
        """Compute the description from the count of each length; there must be at least one."""
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
    """Return the number of the bin of a length."""
    return 0 if length <= 0 else (length - 1).bit_length() + 1


def bounds_of(number: int) -> Tuple[int, int]:
    """Return the first and the last length of a bin."""
    if number < 2:
        return number, number
    return (1 << (number - 2)) + 1, 1 << (number - 1)
