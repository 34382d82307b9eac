"""Rows scaled to length 1, or to mean 0 and variance 1; shape (n, width), float32."""

import math
from typing import Any

import numpy as np

from .kernel import kernel

_F = np.float32
_ZERO, _ONE = _F(0), _F(1)
# Thinc's.
_LEAST_VARIANCE = _F(1e-8)


@kernel
def l2_normalise(X: Any, shortest: float, Y: Any, lengths: Any) -> None:
    """Y[i] = X[i] / max(|X[i]|, shortest); lengths (n,): |X[i]|."""
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
    """What lies along Y is lost, where rows are stretched."""
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
def layer_norm(X: Any, G: Any, b: Any, Y: Any, hat: Any, scales: Any) -> None:
    """Y[i] = G hat[i] + b, hat[i] = (X[i] - mean) scales[i]; scales (n,): 1 / deviation."""
    width = _F(X.shape[1])
    for i in range(X.shape[0]):
        x, y, h, mean, variance = X[i], Y[i], hat[i], _ZERO, _ZERO
        for j in range(x.shape[0]):
            mean += x[j]
        mean /= width
        for j in range(x.shape[0]):
            variance += (x[j] - mean) * (x[j] - mean)
        scale = _ONE / math.sqrt(variance / width + _LEAST_VARIANCE)
        scales[i] = scale
        for j in range(y.shape[0]):
            h[j] = (x[j] - mean) * scale
            y[j] = h[j] * G[j] + b[j]


@kernel
def backprop_layer_norm(dY: Any, G: Any, hat: Any, scales: Any, dX: Any, dG: Any, db: Any) -> None:
    """The gradient; dG and db (width,) begin as zeros."""
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
