"""Numbers for equal keys, in the order in which they first occur."""

from typing import Tuple

import numpy as np


def by_first_sight(keys: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Number equal keys alike, in the order in which they first occur.

    keys (np.ndarray): Shape (n,), int64 or uint64.
    RETURNS (Tuple[np.ndarray, np.ndarray]): The number of each key, shape (n,), int32, and
        of each number the place of its first key, int64.
    """
    _, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
    order = firsts.argsort()
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order] = np.arange(len(order))
    return numbers[places], firsts[order]
