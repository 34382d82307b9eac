"""Vectors and rows of tables that lie in one vector with all other weights: inlined into
the training steps that are one kernel."""

from typing import Any

import numpy as np

from .kernel import kernel


@kernel
def place(table: int, row: int, width: int) -> Any:
    """Where a row begins."""
    return table + np.int64(row) * width


@kernel
def sum_rows(values: Any, places: Any, begin: int, end: int, X: Any) -> None:
    """Sum of some tokens' rows, into X.

    values (Floats1d): Where the rows lie.
    places (Ints1d): Of each token where its row begins, int64.
    begin, end (int): The tokens.
    """
    width = len(X)
    X[:] = 0
    t = begin
    while t + 4 <= end:  # Four at a time: X is read and written less often.
        a = values[places[t] :][:width]
        b = values[places[t + 1] :][:width]
        c = values[places[t + 2] :][:width]
        d = values[places[t + 3] :][:width]
        for j in range(width):
            X[j] += (a[j] + b[j]) + (c[j] + d[j])
        t += 4
    while t < end:
        a = values[places[t] :][:width]
        for j in range(width):
            X[j] += a[j]
        t += 1


@kernel
def dot(X: Any, Y: Any) -> Any:
    """Sum of the products; as long as X."""
    total = np.float32(0)
    for j in range(len(X)):
        total += X[j] * Y[j]
    return total


@kernel
def add(X: Any, factor: Any, Y: Any) -> None:
    """X += factor Y"""
    for j in range(len(X)):
        X[j] += factor * Y[j]
