"""A matrix product for few rows, for use inside a kernel; large products are left to BLAS.

A matrix is a tuple of floats, the index of its first cell among them, and the distance from one
row to the next. So it can also be some columns of a wider matrix.
"""

from typing import Any, Tuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .kernel import kernel

# The numbers of rows and columns that are computed together: their sums fit into registers.
_ROWS, _COLUMNS, VECTOR = 4, 16, 8


@kernel
def at(X: Any, row: int, column: int) -> Any:
    """Return the part of a matrix that begins at a row and a column."""
    return X[0], X[1] + row * X[2] + column, X[2]


@intrinsic(prefer_literal=True)
def _add_part(
    typing: Any, A: Any, B: Any, C: Any, n_inner: Any, n_rows: Any, n_columns: Any
) -> Tuple[Any, Any]:
    """Compute ``add_product`` for numbers of rows and columns that are known at compile time."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        vector = ir.VectorType(ir.FloatType(), n_columns.literal_value)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)

        def place(number: int, row: Any) -> Any:
            """Return a pointer to the first float of a matrix's row."""
            floats, start, step = cgutils.unpack_tuple(builder, arguments[number])
            array = context.make_array(signature.args[number][0])(context, builder, floats)
            return builder.gep(array.data, [builder.add(start, builder.mul(row, step))])

        def load(at: Any) -> Any:
            return builder.load(builder.bitcast(at, vector.as_pointer()), align=4)

        rows = [context.get_constant(types.intp, row) for row in range(n_rows.literal_value)]
        lefts, ends = ([place(number, row) for row in rows] for number in (0, 2))
        sums = [cgutils.alloca_once_value(builder, load(end)) for end in ends]
        with cgutils.for_range(builder, arguments[3]) as loop:
            right = load(place(1, loop.index))
            for left, total in zip(lefts, sums):
                factor = builder.load(builder.gep(left, [loop.index]))
                factor = builder.insert_element(vector(ir.Undefined), factor, lanes.type.element(0))
                factor = builder.shuffle_vector(factor, vector(ir.Undefined), lanes)
                product = builder.fmul(factor, right, flags=("contract",))
                added = builder.fadd(builder.load(total), product, flags=("contract",))
                builder.store(added, total)
        for end, total in zip(ends, sums):
            builder.store(builder.load(total), builder.bitcast(end, vector.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(A, B, C, types.intp, n_rows, n_columns), emit


@kernel
def _add_columns(A: Any, B: Any, C: Any, n: int, n_inner: int, columns: Any) -> None:
    i = 0
    while i + _ROWS <= n:
        _add_part(at(A, i, 0), B, at(C, i, 0), n_inner, _ROWS, columns)  # type: ignore[call-arg]
        i += _ROWS
    while i < n:
        _add_part(at(A, i, 0), B, at(C, i, 0), n_inner, 1, columns)  # type: ignore[call-arg]
        i += 1


@kernel
def add_product(A: Any, B: Any, C: Any, n: int, n_inner: int, m: int) -> None:
    """Compute C += A B.

    A (Tuple[Floats1d, int, int]): Shape (n, n_inner), float32; see the module's docstring.
    B (Tuple[Floats1d, int, int]): Shape (n_inner, m).
    C (Tuple[Floats1d, int, int]): Shape (n, m).
    """
    j = 0
    while j + _COLUMNS <= m:
        _add_columns(A, at(B, 0, j), at(C, 0, j), n, n_inner, _COLUMNS)
        j += _COLUMNS
    while j + VECTOR <= m:
        _add_columns(A, at(B, 0, j), at(C, 0, j), n, n_inner, VECTOR)
        j += VECTOR
    while j < m:
        _add_columns(A, at(B, 0, j), at(C, 0, j), n, n_inner, 1)
        j += 1
