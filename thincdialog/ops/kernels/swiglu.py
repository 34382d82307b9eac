"""SwiGLU, a gated activation: the left half of each row (2 * width) gates the right half."""

from typing import Any

import numpy as np

from .elementary import sigmoid
from .kernel import ordered_kernel

_ONE = np.float32(1)


@ordered_kernel
def swiglu(Z: Any, b: Any, Y: Any) -> None:
    """Compute z += b, and y = gate sigmoid(gate) value; Y has shape (n, width)."""
    width = Y.shape[1]
    for i in range(Y.shape[0]):
        gate, value, y = Z[i, :width], Z[i, width:], Y[i]
        for j in range(width):
            g, v = gate[j] + b[j], value[j] + b[width + j]
            gate[j], value[j] = g, v
            y[j] = g * sigmoid(g) * v


@ordered_kernel
def backprop_swiglu(dY: Any, Z: Any, dZ: Any, db: Any) -> None:
    """Compute the gradient of Z, and add its rows to db."""
    width = dY.shape[1]
    for i in range(dY.shape[0]):
        gate, value, dy = Z[i, :width], Z[i, width:], dY[i]
        d_gate, d_value = dZ[i, :width], dZ[i, width:]
        for j in range(width):
            g = gate[j]
            s = sigmoid(g)
            d_value[j] = dy[j] * (g * s)
            d_gate[j] = dy[j] * value[j] * (s * (_ONE + g * (_ONE - s)))
        for j in range(2 * width):
            db[j] += dZ[i, j]
