"""Number keys in the order in which they first occur."""

from typing import Tuple

import numpy as np


def by_first_sight(keys: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Number distinct keys in the order in which they first occur.

    keys (np.ndarray): Keys, shape (n,), int64 or uint64.
    RETURNS (Tuple[np.ndarray, np.ndarray]): The number of each key, shape (n,), int32; and for
        each number the place where its key first occurs, int64.
    """
    _, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
    order = firsts.argsort()
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order] = np.arange(len(order))
    return numbers[places], firsts[order]
