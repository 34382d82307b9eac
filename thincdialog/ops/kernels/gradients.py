"""What a step does with flat vectors besides its formula: sums of squares, zeros, averages."""

from typing import Any

import numpy as np

from .kernel import kernel


@kernel
def square_sum(X: Any) -> float:
    """Sum of the squares of a vector, float32; the same however many threads there are."""
    total = 0.0
    # Short runs in single precision, added up in double.
    for start in range(0, X.shape[0], 1024):
        run = X[start : start + 1024]
        part = np.float32(0)
        for i in range(run.shape[0]):
            part += run[i] * run[i]
        total += part
    return total


@kernel
def square_sum_of_rows(X: Any, rows: Any) -> float:
    """The same of some rows of a table.

    X (Floats2d): Shape (n_rows, width), float32.
    rows (IntsXd): Row numbers, shape (n,), int64.
    """
    total = 0.0
    for place in range(rows.shape[0]):
        total += square_sum(X[rows[place]])
    return total


@kernel
def clear_rows(X: Any, rows: Any) -> None:
    """Set some rows of a table to zero."""
    for place in range(rows.shape[0]):
        row = X[rows[place]]
        for j in range(row.shape[0]):
            row[j] = 0


@kernel
def move_average(average: Any, values: Any, share: float) -> None:
    """average += share (values - average); shape (n,), float32."""
    part = np.float32(share)
    for i in range(average.shape[0]):
        average[i] += part * (values[i] - average[i])
