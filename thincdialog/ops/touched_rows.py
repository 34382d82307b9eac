"""Which rows of an embedding table's gradient are not zero."""

from typing import Any, Optional

from thinc.api import Ops
from thinc.types import Floats2d, Ints1d


class TouchedRows:
    """Takes note of the rows of a gradient that were added to since it was zero, so
    that an optimizer step costs the batch's rows and not the whole table.

    An embedding layer holds one in ``attrs["touched_rows"]`` and adds to its gradient
    through ``add``. Nothing is noted until someone who clears the gradient calls
    ``watch``. Never saved with a model.

    param (str): Name of the layer's parameter that the gradient belongs to.
    """

    def __init__(self, param: str = "E") -> None:
        self.param = param
        self._is_touched: Optional[Any] = None

    def watch(self, ops: Ops, n_rows: int) -> None:
        """Take note from now on; the gradient must be zero."""
        self._is_touched = ops.xp.zeros((n_rows,), dtype=bool)

    def add(self, ops: Ops, gradient: Floats2d, rows: Ints1d, values: Floats2d) -> None:
        """Add values to rows of the gradient, in place.

        gradient (Floats2d): Shape (n_rows, width).
        rows (Ints1d): Distinct row numbers, int32, shape (n,).
        values (Floats2d): Shape (n, width).
        """
        ops.scatter_add(gradient, rows, values)
        if self._is_touched is not None:
            self._is_touched[rows] = True

    def rows(self) -> Ints1d:
        """The rows added to since ``watch`` or ``clear``, ascending, int64."""
        if self._is_touched is None:
            raise ValueError("TouchedRows.rows() was called before watch()")
        return self._is_touched.nonzero()[0]

    def clear(self) -> None:
        """The gradient is zero again."""
        if self._is_touched is not None:
            self._is_touched[:] = False
