"""Sums the gradients of microbatches in a fixed tree.

The order of additions depends only on how many microbatches there are, so the
sum is the same bit for bit, whichever worker computed which of them. Dense parts are summed
whole, tables by the rows that have a gradient.
"""

from typing import Any, List, NamedTuple, Sequence

import numpy
from thinc.api import Ops
from thinc.types import Floats1d

from ..ops.devices import upload
from ..optimizers.row_sparse import Rows, Segment


class _Partial(NamedTuple):
    """The sum of some microbatches.

    size (int): How many.
    dense (List[Floats1d]): Of each stretch that is no table.
    tables (List[Rows]): Of each table.
    """

    size: int
    dense: List[Any]
    tables: List[Rows]


class GradientSum:
    """Pairwise sum of gradients, as a binary counter: equal-sized partial sums are added as soon
    as there are two of them.

        ((g0 + g1) + (g2 + g3)) + g4

    ops (Ops): Those of the parameters.
    stretches (Sequence[Segment]): Of the parameters (see ``FlatParameters``).
    """

    def __init__(self, ops: Ops, stretches: Sequence[Segment]):
        self.ops, self._dense = ops, dense_slices(stretches)
        self._partial: List[_Partial] = []

    def add(self, vector: Floats1d, tables: List[Rows]) -> None:
        """Take in the gradient of the next microbatch.

        vector (Floats1d): As long as the parameters; what is no table is copied, and zero from
            then on.
        tables (List[Rows]): Of each table; not to be changed from now on.
        """
        dense: List[Any] = []
        for now in self._dense:
            dense.append(vector[now].copy())
            vector[now].fill(0)
        total = _Partial(1, dense, tables)
        while self._partial and self._partial[-1].size == total.size:
            total = self._added(self._partial.pop(), total)
        self._partial.append(total)

    def take(self, vector: Floats1d) -> List[Rows]:
        """Write the sum of all microbatches into a vector and start afresh.

        vector (Floats1d): As long as the parameters; what is no table is written.
        RETURNS (List[Rows]): The sum of each table.
        RAISES (ValueError): If nothing was added.
        """
        if not self._partial:
            raise ValueError("no gradient was added since the last take()")
        total = self._partial.pop()
        while self._partial:
            total = self._added(self._partial.pop(), total)
        for now, summed in zip(self._dense, total.dense):
            vector[now] = summed
        return total.tables

    def _added(self, left: _Partial, right: _Partial) -> _Partial:
        for mine, other in zip(left.dense, right.dense):
            mine += other
        pairs = zip(left.tables, right.tables)
        tables = [added_rows(self.ops, *pair) for pair in pairs]
        return _Partial(left.size + right.size, left.dense, tables)


def added_rows(ops: Ops, left: Rows, right: Rows) -> Rows:
    """The sum of two gradients of a table.

    RETURNS (Rows): May share arrays with one of them.
    """
    if not right[0].shape[0]:
        return left
    if not left[0].shape[0]:
        return right
    rows = numpy.union1d(left[0], right[0])
    values: Any = ops.alloc2f(len(rows), left[1].shape[1])
    places = (numpy.searchsorted(rows, each) for each, _ in (left, right))
    of_left, of_right = upload(ops, *places)
    values[of_left] = left[1]
    # A row that only one of them has: 0 + x is x.
    values[of_right] += right[1]
    return rows, values


def dense_slices(stretches: Sequence[Segment]) -> List[slice]:
    """Where the parts that are no tables lie in a vector."""
    return [slice(part.start, part.stop) for part in stretches if not part.width]
