"""Products of vectors that are exact, so that they do not depend on what else is multiplied."""

from typing import Any

import numpy as np
from thinc.types import Floats2d

# Vectors multiplied at a time, so that few products in double precision are in memory.
AT_ONCE = 16


def on_grid(vectors: Floats2d) -> Floats2d:
    """Round vectors so far that double precision holds the products of any two, and all sums of
    these: each to whole multiples of a power of two, 2^21 of them or more up to its largest number
    for a width of 256. So it does not matter in which order BLAS adds up.

    vectors (Floats2d): Shape (n, width).
    RETURNS (Floats2d): The same shape.
    """
    rows: Any = vectors.astype("float64")
    n_bits = (53 - (rows.shape[1] - 1).bit_length()) // 2
    # Adding a large number rounds off the lowest bits.
    large = abs(rows).max(axis=1, keepdims=True) * 2.0 ** (53 - n_bits)
    return (rows + large - large).astype("f")


def all_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Multiply each vector with each, on the host.

    left (np.ndarray): On the grid, shape (n_left, width), float64.
    right (np.ndarray): On the grid, shape (n_right, width), float64; may be many.
    RETURNS (np.ndarray): Shape (n_left, n_right), float32.
    """
    products = np.empty((len(left), len(right)), dtype="f")
    for start in range(0, len(left), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        products[some] = left[some] @ right.T
    return products
