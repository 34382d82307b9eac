"""SGD: W = (1 - decay) (W - rate dW)"""

from typing import Any

import numpy as np

from .kernel import kernel
from .prefetch import fetch_row


@kernel
def sgd_dense(W: Any, dW: Any, rate: float, decay: float) -> None:
    """A step over whole vectors, in place.

    W (Floats1d): Weights, shape (n,), float32.
    dW (Floats1d): Their gradient.
    rate (float): Step size, times the scale of the gradient.
    decay (float): Share of the weights that is lost (learning rate times L2).
    """
    r, kept = np.float32(rate), np.float32(1.0 - decay)
    for i in range(W.shape[0]):
        W[i] = (W[i] - r * dW[i]) * kept


@kernel
def sgd_rows(W: Any, dW: Any, rows: Any, rate: float, decay: float) -> None:
    """The same over some rows of a table; the others stay as they are.

    W (Floats2d): Weights, shape (n_rows, width), float32.
    dW (Floats2d): Gradient of the rows in question, shape (n, width).
    rows (IntsXd): Their numbers, distinct, shape (n,), int64.
    """
    for place in range(rows.shape[0]):
        fetch_row(W, rows, place)
        sgd_dense(W[rows[place]], dW[place], rate, decay)
