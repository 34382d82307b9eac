"""Vectors and rows of tables that lie in one vector with all other weights: inlined into
the training steps that are one kernel. And a matrix product for few rows: where recurrence
multiplies a dozen rows a step, it is as fast as BLAS, and needs no way out of the kernel.

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


@kernel
def _add_to_four(A: Any, B: Any, C: Any) -> None:
    # Four rows of C by four of B at once: what is loaded of either serves four times.
    c0, c1, c2, c3 = C[0], C[1], C[2], C[3]
    n_inner = B.shape[0]
    for k in range(0, n_inner - 3, 4):
        b0, b1, b2, b3 = B[k], B[k + 1], B[k + 2], B[k + 3]
        p0, p1, p2, p3 = A[0, k], A[0, k + 1], A[0, k + 2], A[0, k + 3]
        q0, q1, q2, q3 = A[1, k], A[1, k + 1], A[1, k + 2], A[1, k + 3]
        r0, r1, r2, r3 = A[2, k], A[2, k + 1], A[2, k + 2], A[2, k + 3]
        s0, s1, s2, s3 = A[3, k], A[3, k + 1], A[3, k + 2], A[3, k + 3]
        for j in range(c0.shape[0]):
            c0[j] += p0 * b0[j] + p1 * b1[j] + p2 * b2[j] + p3 * b3[j]
            c1[j] += q0 * b0[j] + q1 * b1[j] + q2 * b2[j] + q3 * b3[j]
            c2[j] += r0 * b0[j] + r1 * b1[j] + r2 * b2[j] + r3 * b3[j]
            c3[j] += s0 * b0[j] + s1 * b1[j] + s2 * b2[j] + s3 * b3[j]
    for k in range(n_inner - n_inner % 4, n_inner):
        for i in range(4):
            add(C[i], A[i, k], B[k])


@kernel
def _add_to_one(a: Any, B: Any, c: Any) -> None:
    n_inner = B.shape[0]
    for k in range(0, n_inner - 3, 4):
        b0, b1, b2, b3 = B[k], B[k + 1], B[k + 2], B[k + 3]
        p0, p1, p2, p3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        for j in range(c.shape[0]):
            c[j] += p0 * b0[j] + p1 * b1[j] + p2 * b2[j] + p3 * b3[j]
    for k in range(n_inner - n_inner % 4, n_inner):
        add(c, a[k], B[k])


@kernel
def add_product(A: Any, B: Any, C: Any) -> None:
    """C += A B

    A (Floats2d): Shape (n, k), float32, contiguous like the others.
    B (Floats2d): Shape (k, m).
    C (Floats2d): Shape (n, m).
    """
    n = A.shape[0]
    for i in range(0, n - 3, 4):
        _add_to_four(A[i : i + 4], B, C[i : i + 4])
    for i in range(n - n % 4, n):
        _add_to_one(A[i], B, C[i])


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
