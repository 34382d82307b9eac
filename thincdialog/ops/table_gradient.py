"""The gradient of an embedding table, kept as the rows that it has."""

from typing import Any, List, Optional, Tuple

from thinc.api import Ops
from thinc.types import Floats2d, Ints1d

from .bags import sum_by_key


class TableGradient:
    """What a batch adds to a table's gradient stays rows with values: they are much less
    than the table, and need not go through its memory. The array of all rows gets them
    when somebody wants to read or change it (``write``), or when they have become as many.

    ops (Ops): Those of the table.
    dense (Floats2d): The array of all rows, shape (n_rows, width), zero at first.
    """

    def __init__(self, ops: Ops, dense: Floats2d) -> None:
        self.ops, self._dense = ops, dense
        self._kept: List[Tuple[Ints1d, Floats2d]] = []
        self._n_kept = 0
        # Rows of the array that may not be zero; made when there are some.
        self._is_written: Optional[Any] = None
        self._has_written = False

    def add(self, rows: Ints1d, values: Floats2d) -> None:
        """Add values to some rows.

        rows (Ints1d): Distinct row numbers, ascending, int32, shape (n,).
        values (Floats2d): Shape (n, width); not to be changed from now on.
        """
        self._kept.append((rows, values))
        self._n_kept += rows.shape[0]
        if self._n_kept > self._dense.shape[0]:
            self.write()

    def write(self) -> None:
        """Put all that was added into the array. Its rows stay noted until ``clear``:
        gradients may be taken out of it, summed elsewhere and written back."""
        for rows, values in self._kept:
            if self._is_written is None:
                self._is_written = self.ops.xp.zeros((self._dense.shape[0],), dtype=bool)
            self.ops.scatter_add(self._dense, rows, values)
            self._is_written[rows] = True
            self._has_written = True
        self._kept.clear()
        self._n_kept = 0

    def rows(self) -> Tuple[Ints1d, Floats2d]:
        """The rows added to since ``clear``, ascending, int64, shape (n,), and the gradient
        of each, shape (n, width)."""
        if self._has_written:
            self.write()
            written: Any = self._is_written
            dense: Any = self._dense
            numbers = written.nonzero()[0]
            return numbers, dense.take(numbers, axis=0)
        if not self._kept:
            return self.ops.xp.zeros((0,), dtype="int64"), self._dense[:0]
        rows: Any
        rows, values = self._kept[0]
        if len(self._kept) > 1:
            xp = self.ops.xp
            keys = xp.concatenate([each for each, _ in self._kept])
            rows, values = sum_by_key(self.ops, xp.concatenate([v for _, v in self._kept]), keys)
        return rows.astype("int64"), values

    def clear(self) -> None:
        """The gradient is zero again."""
        if self._has_written:
            written: Any = self._is_written
            self._dense[written] = 0
            written[:] = False
            self._has_written = False
        self._kept.clear()
        self._n_kept = 0
