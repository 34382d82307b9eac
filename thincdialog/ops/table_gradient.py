"""The gradient of an embedding table, stored as rows."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats2d, Ints1d

from .bags import sum_by_key
from .devices import upload

# Row numbers of a table, ascending and distinct, int64, on the host; and a row of floats for each.
Rows = Tuple[Any, Any]


def merged_rows(ops: Ops, parts: Sequence[Rows]) -> Rows:
    """Return the sum of gradients of a table: one of them if the others have no rows, else new
    arrays. The values of a row are added in the order of the gradients.

    parts (Sequence[Rows]): The gradients, at least one.
    """
    parts = [part for part in parts if part[0].shape[0]] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    keys, values = zip(*parts)
    numbers, sums = sum_by_key(ops, ops.xp.concatenate(values), numpy.concatenate(keys))
    return numbers.astype("int64"), sums


class TableGradient:
    """Store the gradient of a table as the rows that batches add to, because these rows take much
    less memory than the table. They are written to the dense array on ``write``, and as soon as
    more rows are stored than the table has.

    ops (Ops): Ops of the table.
    dense (Floats2d): Array for the whole gradient, shape (n_rows, width), zero at first.
    """

    def __init__(self, ops: Ops, dense: Floats2d) -> None:
        self.ops = ops
        self._dense: Any = dense
        self._kept: List[Rows] = []
        self._n_kept = 0
        # Mask, on the host, of the dense rows that may be nonzero; None while all are zero.
        self._is_written: Any = None

    def add(self, rows: Ints1d, values: Floats2d) -> None:
        """Add values to some rows.

        rows (Ints1d): Row numbers, distinct and ascending, shape (n,), on the host.
        values (Floats2d): Shape (n, width); do not change them afterwards.
        """
        self._kept.append((rows, values))
        self._n_kept += rows.shape[0]
        if self._n_kept > self._dense.shape[0]:
            self.write()

    def put(self, rows: Any, values: Floats2d) -> None:
        """Replace the gradient by rows and values that ``rows`` returned, or by a sum of several of
        them.

        rows, values: As for ``add``.
        """
        self.clear()
        if rows.shape[0]:
            self.add(rows.astype("i", copy=False), values)

    def write(self) -> None:
        """Write all stored rows to the dense array."""
        for rows, values in self._kept:
            if self._is_written is None:
                self._is_written = numpy.zeros((self._dense.shape[0],), dtype=bool)
            add_to_rows(self.ops, self._dense, rows, values)
            self._is_written[rows] = True
        self._kept, self._n_kept = [], 0

    def rows(self) -> Tuple[Ints1d, Floats2d]:
        """Return the rows that were added to since ``clear``, ascending, int64, shape (n,), on the
        host; and the gradient of each, shape (n, width)."""
        if self._is_written is not None:
            self.write()
            numbers = self._is_written.nonzero()[0]
            return numbers, self._dense.take(*upload(self.ops, numbers), axis=0)
        if not self._kept:
            return numpy.zeros((0,), dtype="int64"), self._dense[:0]  # type: ignore[return-value]
        rows, values = merged_rows(self.ops, self._kept)
        return rows.astype("int64"), values

    def clear(self, *, is_zero: bool = False) -> None:
        """Set the gradient to zero.

        is_zero (bool): Whether the dense array is already zero.
        """
        if self._is_written is not None and not is_zero:
            (rows,) = upload(self.ops, self._is_written.nonzero()[0])
            self._dense[rows] = 0
        self._is_written = None
        self._kept, self._n_kept = [], 0


class TouchedRows:
    """Pass the gradient of an embedding layer's parameter "E" to a ``TableGradient``.

    A layer holds an instance in ``attrs["touched_rows"]`` and adds to the gradient with ``add``.
    By default, rows are added to the dense gradient. After ``keep_in`` they are stored as rows, so
    that an optimizer step costs the rows of the batch and not the whole table. An instance is
    never saved with a model, and a copy starts without a ``TableGradient``.
    """

    def __init__(self) -> None:
        self._kept: Optional[TableGradient] = None

    def __deepcopy__(self, memo: Dict[int, Any]) -> "TouchedRows":
        return TouchedRows()

    def keep_in(self, kept: TableGradient) -> None:
        """Store rows in a ``TableGradient`` from now on; the gradient must be zero."""
        self._kept = kept

    def add(self, layer: Model, rows: Ints1d, values: Floats2d) -> None:
        """Add values to rows of the gradient: in the ``TableGradient`` if there is one, else in
        place.

        layer (Model): The layer that holds this object.
        rows, values: As for ``TableGradient.add``.
        """
        if self._kept is not None:
            self._kept.add(rows, values)
            return
        add_rows(layer, "E", rows, values)


def add_rows(layer: Model, param: str, rows: Ints1d, values: Floats2d) -> None:
    """Add values to rows of a parameter's gradient.

    rows (Ints1d): Distinct row numbers, int32, shape (n,), on the host.
    values (Floats2d): Shape (n, width).
    """
    if not layer.has_grad(param):
        layer.set_grad(param, layer.ops.xp.zeros_like(layer.get_param(param)))
    add_to_rows(layer.ops, layer.get_grad(param), rows, values)


def add_to_rows(ops: Ops, array: Any, rows: Any, values: Any) -> None:
    """Add values to rows of an array, in place.

    rows (Ints1d): Distinct row numbers, shape (n,), on the host.
    values (Floats2d): Shape (n, width).
    """
    if ops.xp is numpy:
        ops.scatter_add(array, rows, values)
    else:
        (index,) = upload(ops, rows)
        array[index] += values
