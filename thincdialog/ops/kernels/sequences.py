"""Sums over the rows of sequences, and their gradients.

X has shape (n_rows, width), float32. ``lengths`` is int32, shape (n_sequences,), with no value
below 0; its sum must not exceed n_rows.
"""

from typing import Any

import numpy as np

from .kernel import kernel

_F = np.float32


@kernel
def reduce_sum(X: Any, lengths: Any, is_mean: bool, Y: Any) -> None:
    """Compute Y[b] = sum (or mean) of the rows of sequence b; Y must be zeros."""
    start = 0
    for b in range(lengths.shape[0]):
        y = Y[b]
        for t in range(start, start + lengths[b]):
            x = X[t]
            for j in range(y.shape[0]):
                y[j] += x[j]
        if is_mean and lengths[b] > 0:
            factor = _F(1.0 / lengths[b])
            for j in range(y.shape[0]):
                y[j] *= factor
        start += lengths[b]


@kernel
def backprop_reduce_sum(dY: Any, lengths: Any, is_mean: bool, dX: Any) -> None:
    """Set each row of sequence b to dY[b], divided by the sequence's length for a mean."""
    start = 0
    for b in range(lengths.shape[0]):
        dy = dY[b]
        factor = _F(1.0 / lengths[b]) if is_mean else _F(1.0)
        for t in range(start, start + lengths[b]):
            dx = dX[t]
            for j in range(dx.shape[0]):
                dx[j] = dy[j] * factor
        start += lengths[b]
