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
    less memory than the table. They are written to the dense array on ``write``.

    ops (Ops): Ops of the table.
    dense (Floats2d): Array for the whole gradient, shape (n_rows, width), zero at first.
    """

    def __init__(self, ops: Ops, dense: Floats2d) -> None:
        self.ops = ops
        self._dense: Any = dense
        self._kept: List[Rows] = []
        self._n_kept = 0
        # The dense rows that may be nonzero, on the host.
        self._written: Any = numpy.zeros(0, dtype="int64")

    def add(self, rows: Ints1d, values: Floats2d) -> None:
        """Add values to some rows.

        rows (Ints1d): Row numbers, distinct and ascending, shape (n,), on the host.
        values (Floats2d): Shape (n, width); do not change them afterwards.
        """
        self._kept.append((rows.astype("int64"), values))
        self._n_kept += rows.shape[0]
        if self._n_kept > self._dense.shape[0]:  # They would take more memory than the table.
            self.put(*self.rows())

    def put(self, rows: Ints1d, values: Floats2d) -> None:
        """Replace the gradient by rows and values that ``rows`` returned, or by a sum of several of
        them.

        rows, values: As for ``add``.
        """
        self.clear()
        self._kept, self._n_kept = [(rows, values)], rows.shape[0]

    def write(self) -> None:
        """Write all stored rows to the dense array."""
        if self._kept:
            rows, values = self.rows()
            (at,) = upload(self.ops, rows)
            self._dense[at] = values
            self._kept, self._n_kept, self._written = [], 0, rows

    def rows(self) -> Rows:
        """Return the rows that were added to since ``clear``, ascending, int64, shape (n,), on the
        host; and the gradient of each, shape (n, width)."""
        # Nothing is uploaded for a gradient that was never written.
        at = upload(self.ops, self._written)[0] if len(self._written) else slice(0)
        return merged_rows(self.ops, [(self._written, self._dense[at]), *self._kept])

    def clear(self, *, is_zero: bool = False) -> None:
        """Set the gradient to zero.

        is_zero (bool): Whether the dense array is already zero.
        """
        if len(self._written) and not is_zero:
            (at,) = upload(self.ops, self._written)
            self._dense[at] = 0
        self._kept, self._n_kept, self._written = [], 0, self._written[:0]


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
    (at,) = upload(layer.ops, rows)
    layer.get_grad(param)[at] += values
