"""How an embedding layer adds to some rows of its gradient."""

from typing import Any, Dict, Optional

from thinc.api import Ops
from thinc.types import Floats2d, Ints1d

from .table_gradient import TableGradient


class TouchedRows:
    """An embedding layer holds one in ``attrs["touched_rows"]`` and adds to its gradient
    through ``add``. Nothing else is done until someone who updates the weights calls
    ``keep_in``; then the rows are kept, and an optimizer step costs the batch's rows and
    not the whole table. Never saved with a model; a copy keeps nothing.

    param (str): Name of the layer's parameter that the gradient belongs to.
    """

    def __init__(self, param: str = "E") -> None:
        self.param = param
        self._kept: Optional[TableGradient] = None

    def __deepcopy__(self, memo: Dict[int, Any]) -> "TouchedRows":
        return TouchedRows(self.param)

    def keep_in(self, kept: TableGradient) -> None:
        """Keep what is added there from now on; the gradient must be zero."""
        self._kept = kept

    def add(self, ops: Ops, gradient: Floats2d, rows: Ints1d, values: Floats2d) -> None:
        """Add values to rows of the gradient: in place, or where they are kept.

        gradient (Floats2d): Shape (n_rows, width).
        rows (Ints1d): Distinct row numbers, ascending, int32, shape (n,).
        values (Floats2d): Shape (n, width); not to be changed from now on.
        """
        if self._kept is None:
            ops.scatter_add(gradient, rows, values)
        else:
            self._kept.add(rows, values)
