"""Activations and their gradients, cell by cell.

All arrays are float32 with the same shape (n,). The last one is the output; it may be the same
array as the first one. A cell's result does not depend on other cells, so it does not depend on
the size of the batch.
"""

import math
from typing import Any

import numpy as np

from .elementary import erf, exp
from .kernel import ordered_kernel

_F = np.float32
_HALF, _ONE, _ZERO = _F(0.5), _F(1), _F(0)
_ROOT_HALF, _DENSITY = _F(math.sqrt(0.5)), _F(1 / math.sqrt(2 * math.pi))


@ordered_kernel
def relu(X: Any, Y: Any) -> None:
    """Compute max(x, 0)."""
    for i in range(X.shape[0]):
        Y[i] = _ZERO if X[i] <= _ZERO else X[i]


@ordered_kernel
def backprop_relu(dY: Any, Y: Any, dX: Any) -> None:
    """Compute dy where y > 0, else 0."""
    for i in range(Y.shape[0]):
        dX[i] = _ZERO if Y[i] <= _ZERO else dY[i]


@ordered_kernel
def gelu(X: Any, Y: Any) -> None:
    """Compute x times the probability that a standard normal variable is less than x."""
    for i in range(X.shape[0]):
        Y[i] = X[i] * (_HALF * (_ONE + erf(X[i] * _ROOT_HALF)))


@ordered_kernel
def backprop_gelu(dY: Any, X: Any, dX: Any) -> None:
    """Compute dy (P(x) + x p(x)), with the distribution P and the density p of a standard normal
    variable."""
    for i in range(X.shape[0]):
        x = X[i]
        density = _DENSITY * exp(-_HALF * x * x)
        dX[i] = dY[i] * (_HALF * (_ONE + erf(x * _ROOT_HALF)) + x * density)
