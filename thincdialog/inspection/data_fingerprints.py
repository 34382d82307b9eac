"""Which examples are equal, from eight bytes of each."""

from array import array
from typing import Hashable, NamedTuple

import numpy as np


class Fingerprints:
    """Fingerprints (Python's hashes of 64 bits) of one thing of each example, in order.

    Different things have the same one by chance in less than one of a million data sets
    of ten million examples.
    """

    def __init__(self) -> None:
        self._values = array("q")

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: Hashable) -> None:
        """Add the next example's."""
        self._values.append(hash(value))

    def numbers(self) -> np.ndarray:
        """RETURNS (np.ndarray): Shape (n,), int64."""
        return np.array(self._values, dtype=np.int64)


class Repeats(NamedTuple):
    """What occurs more than once.

    n_distinct (int): How many different ones there are.
    later (np.ndarray): Numbers of those that stood there before, ascending; int64.
    """

    n_distinct: int
    later: np.ndarray


def repeats(values: np.ndarray) -> Repeats:
    """Find what is repeated.

    values (np.ndarray): Fingerprints, shape (n,), int64.
    """
    _, first = np.unique(values, return_index=True)
    is_later = np.ones(len(values), dtype=bool)
    is_later[first] = False
    return Repeats(len(first), np.flatnonzero(is_later))


def contradictions(inputs: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Examples whose input stands elsewhere with another label.

    inputs (np.ndarray): Fingerprints of what is read, shape (n,), int64.
    pairs (np.ndarray): Of that and the labels, shape (n,), int64.
    RETURNS (np.ndarray): Their numbers, ascending, int64.
    """
    if not len(inputs):
        return np.zeros(0, dtype=np.int64)
    _, first = np.unique(pairs, return_index=True)
    different, n_pairs = np.unique(inputs[first], return_counts=True)
    return np.flatnonzero(np.isin(inputs, different[n_pairs > 1]))
