"""The gradient of an embedding table, kept as the rows that it has."""

from typing import Any, Dict, List, Optional, Tuple

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats2d, Ints1d
from thinc.util import is_numpy_array

from .bags import add_to_rows, sum_by_key, sum_parts
from .known_numbers import derived


class TableGradient:
    """What a batch adds to a table's gradient stays rows with values: they are much less
    than the table, and need not go through its memory. The array of all rows gets them
    when somebody wants to read or change it (``write``), or when they have become as many.

    ops (Ops): Those of the table.
    dense (Floats2d): The array of all rows, shape (n_rows, width), zero at first.
    """

    def __init__(self, ops: Ops, dense: Floats2d) -> None:
        self.ops = ops
        self._dense: Any = dense
        self._kept: List[Tuple[Ints1d, Floats2d]] = []
        self._n_kept = 0
        self._is_sum = False  # Whether what is kept has each row once, on a device, too.
        # Rows of the array that may not be zero; None while all are. A mask, or on a device
        # their numbers, ascending, which the host knows, too.
        self._is_written: Any = None

    def add(self, rows: Ints1d, values: Floats2d) -> None:
        """Add values to some rows.

        rows (Ints1d): Row numbers, int32, shape (n,); on the CPU distinct and ascending.
        values (Floats2d): Shape (n, width); not to be changed from now on.
        """
        self._kept.append((rows, values))
        self._n_kept += rows.shape[0]
        self._is_sum = False
        if self._n_kept > self._dense.shape[0] and is_numpy_array(self._dense):
            self.write()

    def put(self, rows: Any, values: Floats2d) -> None:
        """A sum of what ``rows`` gave is the gradient from now on, in place of what was added.

        rows (Ints1d): Row numbers, distinct and ascending, shape (n,).
        values (Floats2d): Shape (n, width); not to be changed from now on.
        """
        self.clear()
        if rows.shape[0]:
            self.add(rows.astype("i", copy=False), values)
            self._is_sum = True

    def write(self) -> None:
        """Put all that was added into the array."""
        if self._kept and not is_numpy_array(self._dense):
            rows = add_to_rows(self.ops, self._dense, self._kept)
            if self._is_written is not None:
                (rows,) = derived(self.ops, _distinct, self._is_written, rows)
            self._is_written = rows
            self._kept = []
        for rows, values in self._kept:
            if self._is_written is None:
                self._is_written = self.ops.xp.zeros((self._dense.shape[0],), dtype=bool)
            self.ops.scatter_add(self._dense, rows, values)
            self._is_written[rows] = True
        self._kept, self._n_kept = [], 0

    def rows(self) -> Tuple[Ints1d, Floats2d]:
        """The rows added to since ``clear``, ascending, int64 (on a device int32), shape (n,),
        and the gradient of each, shape (n, width)."""
        xp = self.ops.xp
        if self._is_written is not None:
            self.write()
            numbers = self._written_rows()
            return numbers, self._dense.take(numbers, axis=0)
        if not self._kept:
            return xp.zeros((0,), dtype="int64"), self._dense[:0]
        if not is_numpy_array(self._dense):
            return self._kept[0] if self._is_sum else sum_parts(self.ops, self._kept)
        rows: Any
        rows, values = self._kept[0]
        if len(self._kept) > 1:
            keys = xp.concatenate([each for each, _ in self._kept])
            rows, values = sum_by_key(self.ops, xp.concatenate([v for _, v in self._kept]), keys)
        return rows.astype("int64"), values

    def clear(self, *, is_zero: bool = False) -> None:
        """The gradient is zero again.

        is_zero (bool): Whether the array is already.
        """
        if self._is_written is not None and not is_zero:
            self._dense[self._written_rows()] = 0
        self._is_written = None
        self._kept, self._n_kept = [], 0

    def _written_rows(self) -> Any:
        is_mask = is_numpy_array(self._dense)
        return self._is_written.nonzero()[0] if is_mask else self._is_written


def _distinct(*rows: Any) -> Tuple[Any, ...]:
    return (numpy.unique(numpy.concatenate(rows)),)


class TouchedRows:
    """An embedding layer holds one in ``attrs["touched_rows"]`` and adds to the gradient of
    its parameter "E" through ``add``. Nothing else is done until someone who updates the
    weights calls ``keep_in``; then the rows are kept, and an optimizer step costs the batch's
    rows and not the whole table. Never saved with a model; a copy keeps nothing.
    """

    def __init__(self) -> None:
        self._kept: Optional[TableGradient] = None

    def __deepcopy__(self, memo: Dict[int, Any]) -> "TouchedRows":
        return TouchedRows()

    def keep_in(self, kept: TableGradient) -> None:
        """Keep what is added there from now on; the gradient must be zero."""
        self._kept = kept

    def add(self, layer: Model, rows: Ints1d, values: Floats2d) -> None:
        """Add values to rows of the gradient: in place, or where they are kept.

        layer (Model): The layer that holds this.
        rows (Ints1d): Row numbers, int32, shape (n,); on the CPU distinct and ascending.
        values (Floats2d): Shape (n, width); not to be changed from now on.
        """
        if self._kept is not None:
            self._kept.add(rows, values)
            return
        if not layer.has_grad("E"):
            table: Any = layer.get_param("E")
            layer.set_grad("E", layer.ops.alloc2f(*table.shape))
        gradient: Any = layer.get_grad("E")
        if is_numpy_array(gradient):
            layer.ops.scatter_add(gradient, rows, values)
        else:
            add_to_rows(layer.ops, gradient, [(rows, values)])
