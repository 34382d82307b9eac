"""Gradients that travel: dense parts as a vector, tables as the rows that have any."""

from typing import Any, List, NamedTuple, Sequence, Tuple

import numpy
from thinc.api import get_array_module

from ...ops.known_numbers import on_host
from ...optimizers.row_sparse import Part, Rows


class Gradient(NamedTuple):
    """Of all parameters.

    vector (Floats1d): As long as the parameters; what it holds in the places of tables is
        nobody's business.
    tables (List[Rows]): For each table its rows, of which the host knows the numbers, and their
        gradients.
    """

    vector: Any
    tables: List[Rows]


def added_rows(left: Rows, right: Rows) -> Rows:
    """The sum of two gradients of a table.

    RETURNS (Rows): May share arrays with one of them.
    """
    if not len(right[0]):
        return left
    if not len(left[0]):
        return right
    rows = numpy.union1d(left[0], right[0])
    values = get_array_module(left[1]).zeros((len(rows), left[1].shape[1]), dtype="f")
    values[numpy.searchsorted(rows, left[0])] = left[1]
    # A row that only one of them has: 0 + x is x.
    values[numpy.searchsorted(rows, right[0])] += right[1]
    return rows, values


def dense_slices(stretches: Sequence[Part]) -> List[slice]:
    """Where the dense parts lie in a vector."""
    return [slice(part.start, part.stop) for part in stretches if not part.width]


def take_rows(parameters: Any) -> List[Rows]:
    """The gradients of tables, which are zero from then on, as those of a ``Gradient``.

    parameters (FlatParameters): Of a model.
    """
    taken = parameters.take_rows()
    return [(_numbers(parameters.ops, rows), values) for rows, values in taken]


def _numbers(ops: Any, rows: Any) -> Any:
    return on_host(ops, rows).astype("int64", copy=False)


def to_host(gradient: Gradient, vector: Any, dense: Sequence[slice]) -> Gradient:
    """A copy of a gradient on a device.

    vector (Floats1d): Of the host; gets the dense parts.
    dense (Sequence[slice]): See ``dense_slices``.
    """
    for now in dense:
        gradient.vector[now].get(out=vector[now])
    return Gradient(vector, [(rows, values.get()) for rows, values in gradient.tables])


class GradientSum:
    """Gradients of microbatches one after the other, summed in the tree of ``GradientTree``.

    stretches (Sequence[Part]): Of the parameters.
    """

    def __init__(self, stretches: Sequence[Part]):
        self.dense = dense_slices(stretches)
        self._partial: List[Tuple[int, Gradient]] = []

    def add(self, vector: Any, tables: List[Rows]) -> None:
        """Take in the next gradient; the vector is copied, and zero from then on."""
        copied = get_array_module(vector).empty_like(vector)
        for now in self.dense:
            copied[now] = vector[now]
            vector[now] = 0
        size, total = 1, Gradient(copied, tables)
        while self._partial and self._partial[-1][0] == size:
            size, total = size * 2, self._added(self._partial.pop()[1], total)
        self._partial.append((size, total))

    def take(self, vector: Any) -> List[Rows]:
        """Write the sum of what was added into a vector, and begin anew.

        RETURNS (List[Rows]): That of the tables.
        """
        total = self._partial.pop()[1]
        while self._partial:
            total = self._added(self._partial.pop()[1], total)
        for now in self.dense:
            vector[now] = total.vector[now]
        return total.tables

    def _added(self, left: Gradient, right: Gradient) -> Gradient:
        for now in self.dense:
            left.vector[now] += right.vector[now]
        return Gradient(left.vector, [added_rows(*pair) for pair in zip(left.tables, right.tables)])
