"""The gradients that workers exchange."""

from typing import Any, List, NamedTuple

from ...optimizers.row_sparse import Rows


class Gradient(NamedTuple):
    """Hold the gradient of all parameters: dense parts as a vector, and embedding tables as the
    rows that have a gradient.

    vector (Floats1d): Gradient as long as the parameters; its values in the ranges of tables are
        not used.
    tables (List[Rows]): For each table, the numbers of the rows and their gradients.
    """

    vector: Any
    tables: List[Rows]
