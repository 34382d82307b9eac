"""The gradient of softmax, maxout, and rows that are scaled to length 1, or to mean 0 and
variance 1."""

import math
from typing import Any

import numpy as np

from .kernel import kernel

_F = np.float32
_ZERO, _ONE = _F(0), _F(1)


@kernel
def highest(x: Any) -> Any:
    """Return the highest of some floats."""
    # If the bits of negative floats are inverted (except the sign), the bits as integers have
    # the order of the floats, and the compiler can vectorise the maximum of integers.
    best = np.int32(-(2**31))
    bits = x.view(np.int32)
    for j in range(x.shape[0]):
        key = np.int32(bits[j] ^ ((bits[j] >> 31) & 0x7FFFFFFF))
        best = max(best, key)
    return np.int32(best ^ ((best >> 31) & 0x7FFFFFFF)).view(np.float32)


@kernel
def backprop_softmax(Y: Any, dY: Any, dX: Any) -> None:
    """Compute dX = y (dy - sum of y dy)."""
    for i in range(Y.shape[0]):
        y, dy, dx = Y[i], dY[i], dX[i]
        total = _F(0)
        for j in range(y.shape[0]):
            total += y[j] * dy[j]
        for j in range(y.shape[0]):
            dx[j] = y[j] * (dy[j] - total)


@kernel
def maxout(X: Any, best: Any, which: Any) -> None:
    """Find the highest piece of each cell and its number. X has shape (n, n_pieces); ``which`` is
    int32."""
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
def l2_normalise(X: Any, shortest: float, Y: Any, lengths: Any) -> None:
    """Compute Y[i] = X[i] / max(|X[i]|, shortest), and lengths[i] = |X[i]|."""
    least = _F(shortest)
    for i in range(X.shape[0]):
        x, y, total = X[i], Y[i], _ZERO
        for j in range(x.shape[0]):
            total += x[j] * x[j]
        length = math.sqrt(total)
        lengths[i] = length
        factor = _ONE / (least if length < least else length)
        for j in range(y.shape[0]):
            y[j] = x[j] * factor


@kernel
def backprop_l2_normalise(dY: Any, Y: Any, lengths: Any, shortest: float, dX: Any) -> None:
    """Compute the gradient. In rows with length 1, the part along Y is removed."""
    least = _F(shortest)
    for i in range(dY.shape[0]):
        y, dy, dx, along = Y[i], dY[i], dX[i], _ZERO
        for j in range(y.shape[0]):
            along += y[j] * dy[j]
        factor = _ONE / (least if lengths[i] < least else lengths[i])
        along = along if lengths[i] > least else _ZERO
        for j in range(dx.shape[0]):
            dx[j] = (dy[j] - y[j] * along) * factor


@kernel
def layer_norm(X: Any, Z: Any, G: Any, b: Any, eps: float, Y: Any, hat: Any, scales: Any) -> None:
    """Compute hat[i] = (X[i] + Z[i] - mean) scales[i] and Y[i] = G hat[i] + b, where scales[i] is
    1 / deviation of row i. Z may be empty."""
    width, least = _F(X.shape[1]), _F(eps)
    for i in range(X.shape[0]):
        x, y, h, mean, variance = X[i], Y[i], hat[i], _ZERO, _ZERO
        if Z.shape[0]:
            z = Z[i]
            for j in range(h.shape[0]):
                h[j] = x[j] + z[j]
                mean += x[j] + z[j]
        else:
            for j in range(h.shape[0]):
                h[j] = x[j]
                mean += x[j]
        mean /= width
        for j in range(h.shape[0]):
            variance += (h[j] - mean) * (h[j] - mean)
        scale = _ONE / math.sqrt(variance / width + least)
        scales[i] = scale
        for j in range(h.shape[0]):
            part = (h[j] - mean) * scale
            h[j] = part
            y[j] = part * G[j] + b[j]


@kernel
def backprop_layer_norm(dY: Any, G: Any, hat: Any, scales: Any, dX: Any, dG: Any, db: Any) -> None:
    """Compute the gradient; dG and db, shape (width,), must be zeros."""
    width = _F(dY.shape[1])
    for i in range(dY.shape[0]):
        dy, h, dx, total, along = dY[i], hat[i], dX[i], _ZERO, _ZERO
        for j in range(dx.shape[0]):
            db[j] += dy[j]
            dG[j] += dy[j] * h[j]
        for j in range(dx.shape[0]):
            d_hat = dy[j] * G[j]
            total += d_hat
            along += d_hat * h[j]
        total /= width
        along /= width
        for j in range(dx.shape[0]):
            dx[j] = (dy[j] * G[j] - total - h[j] * along) * scales[i]
