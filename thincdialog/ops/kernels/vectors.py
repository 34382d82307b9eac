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
def sum_rows(values: Any, table: int, ids: Any, begin: int, end: int, X: Any) -> None:
    """Sum of the table's rows of some tokens, into X."""
    width = len(X)
    X[:] = 0
    t = begin
    while t + 4 <= end:  # Four at a time: X is read and written less often.
        a = values[place(table, ids[t], width) :][:width]
        b = values[place(table, ids[t + 1], width) :][:width]
        c = values[place(table, ids[t + 2], width) :][:width]
        d = values[place(table, ids[t + 3], width) :][:width]
        for j in range(width):
            X[j] += (a[j] + b[j]) + (c[j] + d[j])
        t += 4
    while t < end:
        a = values[place(table, ids[t], width) :][:width]
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
