"""Adam: one pass over weights, gradient and moments.

    m1 = b1 m1 + (1 - b1) g;   m2 = b2 m2 + (1 - b2) g², at least least m1²;   g = scale dW
    W = (1 - decay) (W - rate (momentum m1 + newest g) / (sqrt(m2) + eps))

Numbers are Python floats (each other type would be compiled anew). ``rate`` holds the
correction of the bias: learn_rate sqrt(1 - b2ⁿ) / (1 - b1ⁿ) in step n. Adam itself has
momentum = 1, newest = 0, least = 0.
"""

import math
from typing import Any

import numpy as np

from .kernel import kernel
from .prefetch import fetch_row


@kernel
def _adam_run(
    W: Any, dW: Any, m1: Any, m2: Any, scale: float, b1: float, b2: float, least: float,
    eps: float, rate: float, momentum: float, newest: float, decay: float, clear: bool,
) -> None:  # fmt: skip
    # From 0 to the length: a range whose ends are unknown is not turned into vectors.
    s, k1, k2 = np.float32(scale), np.float32(b1), np.float32(b2)
    n1, n2 = np.float32(1.0 - b1), np.float32(1.0 - b2)
    at_least = np.float32(least)
    e, r, kept = np.float32(eps), np.float32(rate), np.float32(1.0 - decay)
    of_first, of_newest = np.float32(momentum), np.float32(newest)
    for i in range(W.shape[0]):
        g = dW[i] * s
        first = k1 * m1[i] + n1 * g
        second = max(k2 * m2[i] + n2 * (g * g), at_least * (first * first))
        m1[i] = first
        m2[i] = second
        ahead = of_first * first + of_newest * g
        W[i] = (W[i] - r * (ahead / (math.sqrt(second) + e))) * kept
    if clear:
        for i in range(W.shape[0]):
            dW[i] = 0


@kernel
def adam_dense(
    W: Any, dW: Any, m1: Any, m2: Any, scale: float, b1: float, b2: float, least: float,
    eps: float, rate: float, momentum: float, newest: float, decay: float, clear: bool = False,
) -> None:  # fmt: skip
    """A step of Adam over whole vectors, in place.

    W (Floats1d): Weights, shape (n,), float32.
    dW (Floats1d): Their gradient; set to zero if ``clear``.
    m1 (Floats1d): First moment.
    m2 (Floats1d): Second moment.
    scale (float): The gradient is multiplied by this first.
    b1 (float): Decay of the first moment.
    b2 (float): Decay of the second moment.
    least (float): A second moment is made at least this times the square of the first,
        which is for state that others change, too (``least_second_moment``); 0 for Adam.
    eps (float): Added to the root of the second moment.
    rate (float): Step size, with the correction of the bias.
    momentum (float): Factor of the first moment in the step.
    newest (float): Factor of the gradient itself in it.
    decay (float): Share of the weights that is lost (learning rate times L2).
    clear (bool): Whether to set the gradient to zero.
    """
    # In pieces that are cleared while they are in the first-level cache.
    n = W.shape[0]
    for start in range(0, n, 1024):
        now = slice(start, start + 1024)
        _adam_run(
            W[now], dW[now], m1[now], m2[now], scale, b1, b2, least, eps, rate, momentum,
            newest, decay, clear,
        )  # fmt: skip


@kernel
def adam_rows(
    W: Any, dW: Any, m1: Any, m2: Any, rows: Any, scale: float, b1: float, b2: float, least: float,
    eps: float, rate: float, momentum: float, newest: float, decay: float,
) -> None:  # fmt: skip
    """The same over some rows of a table; the others stay as they are.

    W (Floats2d): Weights, shape (n_rows, width), float32; likewise ``m1, m2``.
    dW (Floats2d): Gradient of the rows in question, shape (n, width).
    rows (IntsXd): Their numbers, distinct, shape (n,), int64.
    """
    for place in range(rows.shape[0]):
        fetch_row(W, rows, place)
        fetch_row(m1, rows, place)
        fetch_row(m2, rows, place)
        row = rows[place]
        _adam_run(
            W[row], dW[place], m1[row], m2[row], scale, b1, b2, least, eps, rate, momentum,
            newest, decay, False,
        )  # fmt: skip
