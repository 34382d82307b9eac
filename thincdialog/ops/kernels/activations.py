"""Activations and their gradients, cell by cell.

All arrays are float32 of one shape (n,). The last one is written; it may be the first one.
What a cell becomes does not depend on the others: the same bits in a batch of any size.
"""

import math
from typing import Any

import numpy as np

from . import elementary
from .elementary import erf, exp
from .kernel import ordered_kernel

_F = np.float32
_HALF, _ONE, _TWO, _ZERO = _F(0.5), _F(1), _F(2), _F(0)
_ROOT_HALF, _DENSITY = _F(math.sqrt(0.5)), _F(1 / math.sqrt(2 * math.pi))
_GELU_SLOPE, _GELU_CUBE = _F(math.sqrt(2 / math.pi)), _F(0.044715)
# Thinc's constants for the gradient of the approximation.
_D1, _D3, _P1, _P3 = _F(0.797885), _F(0.0356774), _F(0.398942), _F(0.0535161)
_SIXTH, _THREE, _SIX = _F(1 / 6), _F(3), _F(6)


@ordered_kernel
def relu(X: Any, Y: Any) -> None:
    """max(x, 0)"""
    for i in range(X.shape[0]):
        Y[i] = _ZERO if X[i] <= _ZERO else X[i]


@ordered_kernel
def backprop_relu(dY: Any, Y: Any, dX: Any) -> None:
    """dy where y > 0"""
    for i in range(Y.shape[0]):
        dX[i] = _ZERO if Y[i] <= _ZERO else dY[i]


@ordered_kernel
def clipped_linear(
    X: Any, slope: float, offset: float, lowest: float, highest: float, Y: Any
) -> None:
    """slope x + offset, no less than lowest and no more than highest"""
    a, b, low, high = _F(slope), _F(offset), _F(lowest), _F(highest)
    for i in range(X.shape[0]):
        y = X[i] * a + b
        y = low if y < low else y
        Y[i] = high if y > high else y


@ordered_kernel
def backprop_clipped_linear(
    dY: Any, X: Any, slope: float, offset: float, lowest: float, highest: float, dX: Any
) -> None:
    """slope dy where nothing was cut off"""
    a, low, high = _F(slope), _F((lowest - offset) / slope), _F((highest - offset) / slope)
    for i in range(X.shape[0]):
        dX[i] = dY[i] * a if low < X[i] and X[i] < high else dY[i] * _ZERO


@ordered_kernel
def sigmoid(X: Any, Y: Any) -> None:
    """1 / (1 + exp(-x))"""
    for i in range(X.shape[0]):
        Y[i] = elementary.sigmoid(X[i])


@ordered_kernel
def backprop_sigmoid(dY: Any, Y: Any, dX: Any) -> None:
    """dy y (1 - y)"""
    for i in range(Y.shape[0]):
        dX[i] = dY[i] * (Y[i] * (_ONE - Y[i]))


@ordered_kernel
def swish(X: Any, Y: Any) -> None:
    """x sigmoid(x)"""
    for i in range(X.shape[0]):
        Y[i] = X[i] * elementary.sigmoid(X[i])


@ordered_kernel
def backprop_swish(dY: Any, X: Any, Y: Any, dX: Any) -> None:
    """dy (y + sigmoid(x) (1 - y))"""
    for i in range(X.shape[0]):
        dX[i] = dY[i] * (Y[i] + elementary.sigmoid(X[i]) * (_ONE - Y[i]))


@ordered_kernel
def hard_swish(X: Any, Y: Any) -> None:
    """x, times 0.2 x + 0.5 between 0 and 1"""
    for i in range(X.shape[0]):
        factor = X[i] * _F(0.2) + _HALF
        factor = _ZERO if factor < _ZERO else factor
        Y[i] = X[i] * (_ONE if factor > _ONE else factor)


@ordered_kernel
def backprop_hard_swish(dY: Any, X: Any, dX: Any) -> None:
    """dy (0.4 x + 0.5), the factor 0 below -2.5 and 1 above 2.5"""
    for i in range(X.shape[0]):
        factor = X[i] * _F(0.4) + _HALF
        factor = _ONE if X[i] > _F(2.5) else factor
        dX[i] = dY[i] * (_ZERO if X[i] < _F(-2.5) else factor)


@ordered_kernel
def hard_swish_mobilenet(X: Any, Y: Any) -> None:
    """x, times (x + 3) / 6 between 0 and 1"""
    for i in range(X.shape[0]):
        factor = X[i] + _THREE
        factor = _ZERO if factor < _ZERO else factor
        Y[i] = X[i] * ((_SIX if factor > _SIX else factor) * _SIXTH)


@ordered_kernel
def backprop_hard_swish_mobilenet(dY: Any, X: Any, dX: Any) -> None:
    """dy (2 x + 3) / 6, the factor 0 below -3 and 1 above 3"""
    for i in range(X.shape[0]):
        factor = _SIXTH * (X[i] * _TWO + _THREE)
        factor = _ONE if X[i] > _THREE else factor
        dX[i] = dY[i] * (_ZERO if X[i] < -_THREE else factor)


@ordered_kernel
def dish(X: Any, Y: Any) -> None:
    """x (x / sqrt(1 + x²) + 1) / 2"""
    for i in range(X.shape[0]):
        x = X[i]
        root = math.sqrt(x * x + _ONE)
        # Below 0, x / root + 1 is 1 / (root (root - x)), which loses no digits.
        Y[i] = x * _HALF * (_ONE / (root * (root - x)) if x < _ZERO else x / root + _ONE)


@ordered_kernel
def backprop_dish(dY: Any, X: Any, dX: Any) -> None:
    """dy (x / r - x³ / (2 r³) + 1/2), r = sqrt(1 + x²)"""
    for i in range(X.shape[0]):
        x = X[i]
        square = x * x + _ONE
        root = math.sqrt(square)
        dX[i] = dY[i] * (x / root - _HALF * x * (x * x) / (square * root) + _HALF)


@ordered_kernel
def gelu(X: Any, Y: Any) -> None:
    """x times the normal distribution's probability of less than x"""
    for i in range(X.shape[0]):
        Y[i] = X[i] * (_HALF * (_ONE + erf(X[i] * _ROOT_HALF)))


@ordered_kernel
def backprop_gelu(dY: Any, X: Any, dX: Any) -> None:
    """dy (that probability + x times its density)"""
    for i in range(X.shape[0]):
        x = X[i]
        density = _DENSITY * exp(-_HALF * x * x)
        dX[i] = dY[i] * (_HALF * (_ONE + erf(x * _ROOT_HALF)) + x * density)


@ordered_kernel
def gelu_approx(X: Any, Y: Any) -> None:
    """x (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x³)"""
    for i in range(X.shape[0]):
        x = X[i]
        # (1 + tanh(u)) / 2 is the sigmoid of 2 u, which is exact far below 0.
        Y[i] = x * elementary.sigmoid(_TWO * _GELU_SLOPE * (x + _GELU_CUBE * (x * x * x)))


@ordered_kernel
def backprop_gelu_approx(dY: Any, X: Any, dX: Any) -> None:
    """dy times the derivative of that"""
    for i in range(X.shape[0]):
        x = X[i]
        cube = x * x * x
        s = elementary.sigmoid(_TWO * (_D3 * cube + _D1 * x))
        slope = _TWO * _TWO * s * (_ONE - s)
        dX[i] = dY[i] * (s + (_P3 * cube + _P1 * x) * slope)


@ordered_kernel
def mish(X: Any, threshold: float, Y: Any) -> None:
    """x tanh(log(1 + exp(x))), or x from the threshold on"""
    end = _F(threshold)
    for i in range(X.shape[0]):
        # exp of no more than 30: its square is a float32.
        e = exp(_F(30) if X[i] > _F(30) else X[i])
        n = e * (e + _TWO)
        Y[i] = X[i] if X[i] >= end else X[i] * (n / (n + _TWO))


@ordered_kernel
def backprop_mish(dY: Any, X: Any, threshold: float, dX: Any) -> None:
    """dy times the derivative of that"""
    end = _F(threshold)
    for i in range(X.shape[0]):
        # exp of no more than 20: its fourth power is a float32.
        e = exp(_F(20) if X[i] > _F(20) else X[i])
        n = e * (e + _TWO)
        slope = _TWO * _TWO * X[i] * e * (_ONE + e) / ((n + _TWO) * (n + _TWO))
        dX[i] = dY[i] if X[i] >= end else dY[i] * (n / (n + _TWO) + slope)
