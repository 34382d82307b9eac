"""Vectors and rows of tables that lie in one vector with all other weights: inlined into
the training steps that are one kernel.

Rows are fetched into the cache ahead of their use: the processor cannot guess which comes."""

from typing import Any, Tuple

import numpy as np
from llvmlite import ir
from numba import carray
from numba.core import cgutils, types
from numba.extending import intrinsic

from .kernel import kernel

# Floats in a line of the cache; some processors have longer ones.
_LINE = 16
# Rows fetched before their turn.
AHEAD = 4


@kernel
def place(table: int, row: int, width: int) -> Any:
    """Where a row begins."""
    return table + np.int64(row) * width


@intrinsic
def _pointer(typing: Any, address: Any) -> Tuple[Any, Any]:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), emit


@kernel
def floats_at(address: int, n: int) -> Any:
    """Floats that lie in memory from an address on; an array elsewhere keeps them alive."""
    return carray(_pointer(address), (n,), np.float32)  # type: ignore[call-arg]


@kernel
def sum_rows(rows: Any, begin: int, end: int, X: Any) -> None:
    """Sum of some tokens' rows, into X.

    rows (Ints1d): The address of each token's row, int64.
    begin, end (int): The tokens.
    """
    width = len(X)
    X[:] = 0
    t = begin
    while t + 4 <= end:  # Four at a time: X is read and written less often.
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


@intrinsic
def _fetch(typing: Any, array: Any, index: Any) -> Tuple[Any, Any]:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        start = context.make_array(kind)(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, start.strides, 1)[0]
        data = builder.bitcast(start.data, ir.IntType(8).as_pointer())
        address = builder.gep(data, [builder.mul(arguments[1], stride)])
        number = ir.IntType(32)
        # (address, to be written, to be kept in every cache, data)
        form = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], form)
        builder.call(fetch, [address, number(1), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), emit


@kernel
def fetch_row(table: Any, rows: Any, place: int) -> None:
    """Fetch the row that is ``AHEAD`` places further on; it will be written to.

    table (Floats2d): Shape (n_rows, width), float32.
    rows (IntsXd): Row numbers in their order, shape (n,), int64.
    place (int): That of the row in turn.
    """
    fetch_floats(table[rows[min(place + AHEAD, rows.shape[0] - 1)]])


@kernel
def fetch_floats(row: Any) -> None:
    """Fetch these; they will be written to.

    row (Floats1d): Shape (n,), float32.
    """
    for j in range(0, row.shape[0], _LINE):
        _fetch(row, j)  # type: ignore[call-arg]
