"""Gradients that workers exchange: dense parts as a vector, tables as rows with a gradient."""

from typing import Any, List, NamedTuple, Sequence

from ...optimizers.row_sparse import Rows


class Gradient(NamedTuple):
    """Hold the gradient of all parameters.

    vector (Floats1d): As long as the parameters; its values in the ranges of tables are not used.
    tables (List[Rows]): For each table the numbers of its rows, on the host, and the rows'
        gradients.
    """

    vector: Any
    tables: List[Rows]


def to_host(gradient: Gradient, vector: Any, dense: Sequence[slice]) -> Gradient:
    """Copy a gradient from a device.

    vector (Floats1d): Receives the dense parts, on the host.
    dense (Sequence[slice]): See ``dense_slices``.
    """
    for now in dense:
        gradient.vector[now].get(out=vector[now])
    return Gradient(vector, [(rows, values.get()) for rows, values in gradient.tables])
