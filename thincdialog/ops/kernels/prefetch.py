"""Fetches rows into the cache ahead of their use: the processor cannot guess which comes."""

from typing import Any, Tuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .kernel import kernel

# Floats in a line of the cache; some processors have longer ones.
_LINE = 16
# Rows fetched before their turn.
AHEAD = 4


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
