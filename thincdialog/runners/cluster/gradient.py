"""The gradients that workers exchange."""

from typing import Any, List, NamedTuple, Sequence

from ...optimizers.row_sparse import Rows


class Gradient(NamedTuple):
    """Hold the gradient of all parameters: dense parts as a vector, and embedding tables as the
    rows that have a gradient.

    vector (Floats1d): Gradient as long as the parameters; its values in the ranges of tables are
        not used.
    tables (List[Rows]): For each table, the numbers of the rows, on the host, and their gradients.
    """

    vector: Any
    tables: List[Rows]


def to_host(gradient: Gradient, vector: Any, dense: Sequence[slice]) -> Gradient:
    """Copy a gradient from a device to the host.

    gradient (Gradient): Gradient on a device.
    vector (Floats1d): Vector on the host that receives the dense parts.
    dense (Sequence[slice]): Ranges of the dense parts (``dense_slices``).
    """
    for now in dense:
        gradient.vector[now].get(out=vector[now])
    return Gradient(vector, [(rows, values.get()) for rows, values in gradient.tables])
