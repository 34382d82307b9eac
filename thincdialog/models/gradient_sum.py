"""Sum of the gradients of microbatches in a fixed order.

The order of additions depends only on the number of microbatches, so the sum is the same bit
for bit, whichever worker computed which microbatch. Dense parameters are summed whole, tables
only in the rows that have a gradient.
"""

from typing import Any, List, NamedTuple, Sequence

from thinc.api import Ops
from thinc.types import Floats1d

from ..ops.table_gradient import Rows, merged_rows
from ..optimizers.row_sparse import Segment


class _Partial(NamedTuple):
    """Hold the sum of some microbatches.

    size (int): Number of microbatches.
    dense (List[Floats1d]): Sum of each segment that is not a table.
    tables (List[Rows]): Sum of each table.
    """

    size: int
    dense: List[Any]
    tables: List[Rows]


class GradientSum:
    """Sum gradients in pairs, like a binary counter: two partial sums of the same size are added as
    soon as both are there.

        ((g0 + g1) + (g2 + g3)) + g4

    ops (Ops): Ops of the parameters.
    segments (Sequence[Segment]): Segments of the parameters (see ``FlatParameters``).
    """

    def __init__(self, ops: Ops, segments: Sequence[Segment]):
        self.ops, self._dense = ops, dense_slices(segments)
        self._partial: List[_Partial] = []

    def add(self, vector: Floats1d, tables: List[Rows]) -> None:
        """Add the gradient of the next microbatch.

        vector (Floats1d): Gradient, as long as the parameters. Its dense segments are copied, then
            set to zero.
        tables (List[Rows]): Gradient of each table; do not change them afterwards.
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
        """Write the sum of all microbatches into a vector and start from zero.

        vector (Floats1d): As long as the parameters; only its dense segments are written.
        RETURNS (List[Rows]): The sum of each table.
        RAISES (ValueError): If no gradient was added.
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
        tables = [merged_rows(self.ops, pair) for pair in pairs]
        return _Partial(left.size + right.size, left.dense, tables)


def dense_slices(segments: Sequence[Segment]) -> List[slice]:
    """Return the slices of a flat vector that are not tables."""
    return [slice(part.start, part.stop) for part in segments if not part.width]
