"""Gradients that travel: dense parts as a vector, tables as the rows that have any."""

from typing import Any, List, NamedTuple, Sequence

from ...optimizers.row_sparse import Rows


class Gradient(NamedTuple):
    """Of all parameters.

    vector (Floats1d): As long as the parameters; what it holds in the places of tables is
        nobody's business.
    tables (List[Rows]): For each table its rows, of which the host knows the numbers, and their
        gradients.
    """

    vector: Any
    tables: List[Rows]


def to_host(gradient: Gradient, vector: Any, dense: Sequence[slice]) -> Gradient:
    """A copy of a gradient on a device.

    vector (Floats1d): Of the host; gets the dense parts.
    dense (Sequence[slice]): See ``dense_slices``.
    """
    for now in dense:
        gradient.vector[now].get(out=vector[now])
    return Gradient(vector, [(rows, values.get()) for rows, values in gradient.tables])
