"""What a step does with flat vectors besides its formula: sums of squares, averages."""

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
def move_average(average: Any, values: Any, share: float) -> None:
    """average += share (values - average); shape (n,), float32."""
    part = np.float32(share)
    for i in range(average.shape[0]):
        average[i] += part * (values[i] - average[i])
