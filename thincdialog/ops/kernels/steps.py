"""Steps of the optimizers: one pass over weights, gradient and state, in place.

A step updates some rows of the weights W and of the state, shape (n_rows, width), float32: those
with the numbers ``rows``, distinct, int64, shape (n,), whose gradient is dW, shape (n, width).

``settings`` is a tuple of Python floats (any other type would cause another compilation). Its last
value, ``decay``, is the fraction of the weights that is subtracted: learning rate times L2.
"""

import math
from typing import Any

import numpy as np

from .kernel import kernel


@kernel
def sgd(W: Any, dW: Any, rows: Any, settings: Any) -> None:
    """Compute W = (1 - decay) (W - rate dW).

    settings: rate (times the scale of the gradient), decay.
    """
    rate, decay = settings
    r, kept = np.float32(rate), np.float32(1.0 - decay)
    for place in range(rows.shape[0]):
        w, d = W[rows[place]], dW[place]
        for i in range(w.shape[0]):
            w[i] = (w[i] - r * d[i]) * kept


@kernel
def adagrad(W: Any, dW: Any, S: Any, rows: Any, settings: Any) -> None:
    """Compute S = S + g²;   g = scale dW;   W = (1 - decay) (W - rate g / (sqrt(S) + eps)).

    settings: scale, eps, rate, decay.
    """
    scale, eps, rate, decay = settings
    s, e = np.float32(scale), np.float32(eps)
    r, kept = np.float32(rate), np.float32(1.0 - decay)
    for place in range(rows.shape[0]):
        w, d, squares = W[rows[place]], dW[place], S[rows[place]]
        for i in range(w.shape[0]):
            g = d[i] * s
            total = squares[i] + g * g
            squares[i] = total
            w[i] = (w[i] - r * (g / (math.sqrt(total) + e))) * kept


@kernel
def momentum(W: Any, dW: Any, V: Any, rows: Any, settings: Any) -> None:
    """Compute V = momentum V + g;   g = scale dW;   W = (1 - decay) (W - rate (speed V + newest
    g)).

    settings: scale, momentum, speed, newest, rate, decay.
    """
    scale, momentum, speed, newest, rate, decay = settings
    s, m = np.float32(scale), np.float32(momentum)
    of_speed, of_newest = np.float32(speed), np.float32(newest)
    r, kept = np.float32(rate), np.float32(1.0 - decay)
    for place in range(rows.shape[0]):
        w, d, v = W[rows[place]], dW[place], V[rows[place]]
        for i in range(w.shape[0]):
            g = d[i] * s
            now = m * v[i] + g
            v[i] = now
            w[i] = (w[i] - r * (of_speed * now + of_newest * g)) * kept


@kernel
def adam(W: Any, dW: Any, M1: Any, M2: Any, rows: Any, settings: Any) -> None:
    """Take a step of Adam, in which the newest gradient can have a weight of its own.

        m1 = b1 m1 + (1 - b1) g;   m2 = b2 m2 + (1 - b2) g², at least least m1²;   g = scale dW
        W = (1 - decay) (W - rate (momentum m1 + newest g) / (sqrt(m2) + eps))

    M1, M2 (Floats2d): The moments.
    settings: scale, b1, b2, least, eps, rate, momentum, newest, decay. In step n, ``rate`` is
        learn_rate sqrt(1 - b2ⁿ) / (1 - b1ⁿ). ``least`` is for moments that other workers change,
        too (``least_second_moment``). Plain Adam has least = 0, momentum = 1, newest = 0.
    """
    scale, b1, b2, least, eps, rate, momentum, newest, decay = settings
    s, k1, k2 = np.float32(scale), np.float32(b1), np.float32(b2)
    n1, n2 = np.float32(1.0 - b1), np.float32(1.0 - b2)
    at_least = np.float32(least)
    e, r, kept = np.float32(eps), np.float32(rate), np.float32(1.0 - decay)
    of_first, of_newest = np.float32(momentum), np.float32(newest)
    for place in range(rows.shape[0]):
        w, d, m1, m2 = W[rows[place]], dW[place], M1[rows[place]], M2[rows[place]]
        # This loop runs from 0 to the length, because other ranges are not vectorised.
        for i in range(w.shape[0]):
            g = d[i] * s
            first = k1 * m1[i] + n1 * g
            second = max(k2 * m2[i] + n2 * (g * g), at_least * (first * first))
            m1[i] = first
            m2[i] = second
            ahead = of_first * first + of_newest * g
            w[i] = (w[i] - r * (ahead / (math.sqrt(second) + e))) * kept


@kernel
def square_sum(X: Any) -> float:
    """Return the sum of the squares of a vector, float32; the same for any number of threads."""
    total = 0.0
    # Sum short runs in single precision, and the runs in double precision.
    for start in range(0, X.shape[0], 1024):
        run = X[start : start + 1024]
        part = np.float32(0)
        for i in range(run.shape[0]):
            part += run[i] * run[i]
        total += part
    return total


@kernel
def move_average(average: Any, values: Any, share: float) -> None:
    """Compute average += share (values - average); shape (n,), float32."""
    part = np.float32(share)
    for i in range(average.shape[0]):
        average[i] += part * (values[i] - average[i])
