"""Exact dot products, which do not depend on the other vectors in the same multiplication."""

from typing import Any

import numpy as np
from thinc.types import Floats2d

# The number of vectors multiplied at a time, to keep few double-precision products in memory.
N_VECTORS = 16


def on_grid(vectors: Floats2d) -> Floats2d:
    """Round vectors so that double precision holds the product of any two numbers, and any sum of
    such products, exactly. Then the result does not depend on the order in which BLAS adds.

    Each vector is rounded to whole multiples of a power of two. For a width of 256, this power is
    at most 2^-21 times the vector's largest number.

    vectors (Floats2d): Shape (n, width).
    RETURNS (Floats2d): The same shape.
    """
    rows: Any = vectors.astype("float64")
    n_bits = (53 - (rows.shape[1] - 1).bit_length()) // 2
    # Adding a large number rounds off the lowest bits.
    large = abs(rows).max(axis=1, keepdims=True) * 2.0 ** (53 - n_bits)
    return (rows + large - large).astype("f")


def all_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the dot products of all pairs of vectors, on the host.

    left (np.ndarray): Vectors from ``on_grid``, shape (n_left, width), float64.
    right (np.ndarray): Vectors from ``on_grid``, shape (n_right, width), float64; may be many.
    RETURNS (np.ndarray): Shape (n_left, n_right), float32.
    """
    products = np.empty((len(left), len(right)), dtype="f")
    for start in range(0, len(left), N_VECTORS):
        some = slice(start, start + N_VECTORS)
        products[some] = left[some] @ right.T
    return products
