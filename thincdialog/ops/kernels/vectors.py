"""Operations on vectors and table rows in memory, inlined into the one-kernel training steps."""

from typing import Any, Tuple

import numpy as np
from numba import carray
from numba.core import cgutils, types
from numba.extending import intrinsic

from .kernel import kernel


@kernel
def place(table: int, row: int, width: int) -> Any:
    """Return the index of a row's first float."""
    return table + np.int64(row) * width


@intrinsic
def _pointer(typing: Any, address: Any) -> Tuple[Any, Any]:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), emit


@kernel
def floats_at(address: int, n: int) -> Any:
    """Return the floats in memory at an address, as an array. The caller must keep the memory
    alive."""
    return carray(_pointer(address), (n,), np.float32)  # type: ignore[call-arg]


@kernel
def sum_rows(rows: Any, begin: int, end: int, X: Any) -> None:
    """Write the sum of some tokens' rows to X.

    rows (Ints1d): The address of each token's row, int64.
    begin, end (int): Range of the tokens.
    """
    width = len(X)
    X[:] = 0
    t = begin
    while t + 4 <= end:  # Four rows at a time, so that X is read and written less often.
        a = floats_at(rows[t], width)
        b = floats_at(rows[t + 1], width)
        c = floats_at(rows[t + 2], width)
        d = floats_at(rows[t + 3], width)
        for j in range(width):
            X[j] += (a[j] + b[j]) + (c[j] + d[j])
        t += 4
    while t < end:
        a = floats_at(rows[t], width)
        for j in range(width):
            X[j] += a[j]
        t += 1


@kernel
def dot(X: Any, Y: Any) -> Any:
    """Return the dot product of two vectors; Y may be longer than X."""
    total = np.float32(0)
    for j in range(len(X)):
        total += X[j] * Y[j]
    return total


@kernel
def add(X: Any, factor: Any, Y: Any) -> None:
    """Compute X += factor Y."""
    for j in range(len(X)):
        X[j] += factor * Y[j]
