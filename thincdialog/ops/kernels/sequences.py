"""Reductions over the rows of sequences, their gradients, and windows.

X has shape (n_rows, width), float32; ``lengths`` int32, shape (n_sequences,), whose sum
must be no more than n_rows: ``fit`` says so.
"""

from typing import Any

import numpy as np

from .kernel import kernel

_F = np.float32


@kernel
def fit(lengths: Any, least: int, n_rows: int) -> bool:
    """Whether all lengths are at least ``least``, and together no more than n_rows."""
    total = 0
    for b in range(lengths.shape[0]):
        if lengths[b] < least:
            return False
        total += lengths[b]
    return total <= n_rows


@kernel
def reduce_sum(X: Any, lengths: Any, is_mean: bool, Y: Any) -> None:
    """Y[b] = sum (or mean) of the rows of sequence b; Y begins as zeros."""
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
    """Each row of sequence b gets dY[b] (or its share of it)."""
    start = 0
    for b in range(lengths.shape[0]):
        dy = dY[b]
        factor = _F(1.0 / lengths[b]) if is_mean else _F(1.0)
        for t in range(start, start + lengths[b]):
            dx = dX[t]
            for j in range(dx.shape[0]):
                dx[j] = dy[j] * factor
        start += lengths[b]


@kernel
def reduce_max(X: Any, lengths: Any, Y: Any, which: Any) -> None:
    """Y[b] = highest of each column of sequence b; which (int32, zeros): in what row."""
    start = 0
    for b in range(lengths.shape[0]):
        y, w = Y[b], which[b]
        y[:] = X[start]
        for i in range(1, lengths[b]):
            x, place = X[start + i], np.int32(i)
            for j in range(y.shape[0]):
                is_higher = x[j] > y[j]
                y[j] = x[j] if is_higher else y[j]
                w[j] = place if is_higher else w[j]
        start += lengths[b]


@kernel
def backprop_reduce_max(dY: Any, which: Any, lengths: Any, dX: Any) -> bool:
    """The highest gets the gradient; dX begins as zeros. False if there is no such place."""
    start = 0
    for b in range(lengths.shape[0]):
        for j in range(dY.shape[1]):
            if which[b, j] < 0 or which[b, j] >= lengths[b]:
                return False
            dX[start + which[b, j], j] = dY[b, j]
        start += lengths[b]
    return True


@kernel
def seq2col(X: Any, n_sides: int, lengths: Any, Y: Any, is_gradient: bool) -> None:
    """Y[t] = the rows from X[t - n_sides] to X[t + n_sides] side by side; Y begins as zeros.
    Of a gradient the other way: X[t] gets what all of these have in Y; X begins as zeros."""
    width, start = X.shape[1], 0
    for b in range(lengths.shape[0]):
        stop = start + lengths[b]
        for t in range(start, stop):
            for other in range(max(start, t - n_sides), min(stop, t + n_sides + 1)):
                first = (other - t + n_sides) * width
                y, x = Y[t, first : first + width], X[other]
                if is_gradient:
                    for j in range(x.shape[0]):
                        x[j] += y[j]
                else:
                    for j in range(x.shape[0]):
                        y[j] = x[j]
        start = stop
