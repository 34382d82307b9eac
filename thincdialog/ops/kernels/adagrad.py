"""Adagrad: one pass over weights, gradient and sums of squares.

S = S + g²;   g = scale dW
W = (1 - decay) (W - rate g / (sqrt(S) + eps))
"""

import math
from typing import Any

import numpy as np

from .kernel import kernel
from .prefetch import fetch_row


@kernel
def adagrad_dense(
    W: Any, dW: Any, S: Any, scale: float, eps: float, rate: float, decay: float
) -> None:
    """A step over whole vectors, in place.

    W (Floats1d): Weights, shape (n,), float32.
    dW (Floats1d): Their gradient.
    S (Floats1d): Sums of squared gradients.
    scale (float): The gradient is multiplied by this first.
    eps (float): Added to the root of S.
    rate (float): Step size.
    decay (float): Share of the weights that is lost (learning rate times L2).
    """
    s, e = np.float32(scale), np.float32(eps)
    r, kept = np.float32(rate), np.float32(1.0 - decay)
    for i in range(W.shape[0]):
        g = dW[i] * s
        total = S[i] + g * g
        S[i] = total
        W[i] = (W[i] - r * (g / (math.sqrt(total) + e))) * kept


@kernel
def adagrad_rows(
    W: Any, dW: Any, S: Any, rows: Any, scale: float, eps: float, rate: float, decay: float
) -> None:
    """The same over some rows of a table; the others stay as they are.

    W (Floats2d): Weights, shape (n_rows, width), float32; likewise ``S``.
    dW (Floats2d): Gradient of the rows in question, shape (n, width).
    rows (IntsXd): Their numbers, distinct, shape (n,), int64.
    """
    for place in range(rows.shape[0]):
        fetch_row(W, rows, place)
        fetch_row(S, rows, place)
        row = rows[place]
        adagrad_dense(W[row], dW[place], S[row], scale, eps, rate, decay)
