"""Softmax, maxout and dropout masks, row by row or piece by piece."""

from typing import Any

import numpy as np

from .elementary import exp
from .kernel import kernel

_F = np.float32


@kernel
def _highest(x: Any) -> Any:
    # The bits of floats, as whole numbers with those of negative ones turned round, are in
    # the floats' order, and the highest whole number is found in vectors.
    highest = np.int32(-(2**31))
    bits = x.view(np.int32)
    for j in range(x.shape[0]):
        key = np.int32(bits[j] ^ ((bits[j] >> 31) & 0x7FFFFFFF))
        highest = max(highest, key)
    return np.int32(highest ^ ((highest >> 31) & 0x7FFFFFFF)).view(np.float32)


@kernel
def softmax(X: Any, factor: float, Y: Any) -> None:
    """Y[i] = exp(factor X[i]) over its sum; shape (n, width), float32, width above 0."""
    scale = _F(factor)
    for i in range(X.shape[0]):
        x, y = X[i], Y[i]
        highest = _highest(x) * scale
        total = _F(0)
        for j in range(y.shape[0]):
            y[j] = exp(x[j] * scale - highest)
            total += y[j]
        for j in range(y.shape[0]):
            y[j] /= total


@kernel
def backprop_softmax(Y: Any, dY: Any, factor: float, dX: Any) -> None:
    """factor y (dy - sum of y dy)"""
    scale = _F(factor)
    for i in range(Y.shape[0]):
        y, dy, dx = Y[i], dY[i], dX[i]
        total = _F(0)
        for j in range(y.shape[0]):
            total += y[j] * dy[j]
        for j in range(y.shape[0]):
            dx[j] = scale * y[j] * (dy[j] - total)


@kernel
def maxout(X: Any, best: Any, which: Any) -> None:
    """Highest piece of each cell, and its number; X of shape (n, n_pieces), int32 which."""
    if X.shape[1] == 3:
        for i in range(best.shape[0]):
            a, b, c = X[i, 0], X[i, 1], X[i, 2]
            place, highest = (np.int32(1), b) if b > a else (np.int32(0), a)
            best[i] = c if c > highest else highest
            which[i] = np.int32(2) if c > highest else place
        return
    for i in range(best.shape[0]):
        highest, place = X[i, 0], 0
        for p in range(1, X.shape[1]):
            if X[i, p] > highest:
                highest, place = X[i, p], p
        best[i] = highest
        which[i] = place


@kernel
def backprop_maxout(dY: Any, which: Any, dX: Any) -> bool:
    """The highest piece gets the gradient; dX begins as zeros. False if there is no such
    piece."""
    n_pieces = dX.shape[1]
    for i in range(dY.shape[0]):
        if which[i] < 0 or which[i] >= n_pieces:
            return False
        dX[i, which[i]] = dY[i]
    return True


@kernel
def dropout_mask(levels: Any, dropped: int, kept: float, mask: Any) -> None:
    """kept where the level (uint16) is at least ``dropped``, else 0; shape (n,)."""
    factor, end = _F(kept), np.uint16(dropped)
    for i in range(levels.shape[0]):
        mask[i] = factor if levels[i] >= end else _F(0)
