"""Steps of the optimizers: one pass over weights, gradient and state, in place.

`<name>_dense` updates whole vectors, shape (n,), float32: the weights W and the state, from the
gradient dW. `<name>_rows` updates some rows of tables, shape (n_rows, width): those with the
numbers ``rows``, distinct, int64, shape (n,), whose gradient is dW, shape (n, width).

``settings`` is a tuple of Python floats (any other type would cause another compilation). Its last
value, ``decay``, is the fraction of the weights that is subtracted: learning rate times L2.
"""

import math
from typing import Any

import numpy as np

from .kernel import kernel


@kernel
def sgd_dense(W: Any, dW: Any, settings: Any) -> None:
    """Compute W = (1 - decay) (W - rate dW).

    settings: rate (times the scale of the gradient), decay.
    """
    rate, decay = settings
    r, kept = np.float32(rate), np.float32(1.0 - decay)
    for i in range(W.shape[0]):
        W[i] = (W[i] - r * dW[i]) * kept


@kernel
def sgd_rows(W: Any, dW: Any, rows: Any, settings: Any) -> None:
    """Apply ``sgd_dense`` to some rows."""
    for place in range(rows.shape[0]):
        sgd_dense(W[rows[place]], dW[place], settings)


@kernel
def adagrad_dense(W: Any, dW: Any, S: Any, settings: Any) -> None:
    """Compute S = S + g²;   g = scale dW;   W = (1 - decay) (W - rate g / (sqrt(S) + eps)).

    settings: scale, eps, rate, decay.
    """
    scale, eps, rate, decay = settings
    s, e = np.float32(scale), np.float32(eps)
    r, kept = np.float32(rate), np.float32(1.0 - decay)
    for i in range(W.shape[0]):
        g = dW[i] * s
        total = S[i] + g * g
        S[i] = total
        W[i] = (W[i] - r * (g / (math.sqrt(total) + e))) * kept


@kernel
def adagrad_rows(W: Any, dW: Any, S: Any, rows: Any, settings: Any) -> None:
    """Apply ``adagrad_dense`` to some rows."""
    for place in range(rows.shape[0]):
        row = rows[place]
        adagrad_dense(W[row], dW[place], S[row], settings)


@kernel
def momentum_dense(W: Any, dW: Any, V: Any, settings: Any) -> None:
    """Compute V = momentum V + g;   g = scale dW;   W = (1 - decay) (W - rate (speed V + newest
    g)).

    settings: scale, momentum, speed, newest, rate, decay.
    """
    scale, momentum, speed, newest, rate, decay = settings
    s, m = np.float32(scale), np.float32(momentum)
    of_speed, of_newest = np.float32(speed), np.float32(newest)
    r, kept = np.float32(rate), np.float32(1.0 - decay)
    for i in range(W.shape[0]):
        g = dW[i] * s
        now = m * V[i] + g
        V[i] = now
        W[i] = (W[i] - r * (of_speed * now + of_newest * g)) * kept


@kernel
def momentum_rows(W: Any, dW: Any, V: Any, rows: Any, settings: Any) -> None:
    """Apply ``momentum_dense`` to some rows."""
    for place in range(rows.shape[0]):
        row = rows[place]
        momentum_dense(W[row], dW[place], V[row], settings)


@kernel
def adam_dense(W: Any, dW: Any, m1: Any, m2: Any, settings: Any) -> None:
    """Take a step of Adam, in which the newest gradient can have a weight of its own.

        m1 = b1 m1 + (1 - b1) g;   m2 = b2 m2 + (1 - b2) g², at least least m1²;   g = scale dW
        W = (1 - decay) (W - rate (momentum m1 + newest g) / (sqrt(m2) + eps))

    m1, m2 (Floats1d): The moments.
    settings: scale, b1, b2, least, eps, rate, momentum, newest, decay. In step n, ``rate`` is
        learn_rate sqrt(1 - b2ⁿ) / (1 - b1ⁿ). ``least`` is for moments that other workers change,
        too (``least_second_moment``). Plain Adam has least = 0, momentum = 1, newest = 0.
    """
    scale, b1, b2, least, eps, rate, momentum, newest, decay = settings
    # The loop below runs from 0 to the length, because other ranges are not vectorised.
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


@kernel
def adam_rows(W: Any, dW: Any, m1: Any, m2: Any, rows: Any, settings: Any) -> None:
    """Apply ``adam_dense`` to some rows."""
    for place in range(rows.shape[0]):
        row = rows[place]
        adam_dense(W[row], dW[place], m1[row], m2[row], settings)


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
