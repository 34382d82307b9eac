"""Array operations: Thinc's ops with seeded dropout, and kernels over bags of ids."""

from . import (
    bags,
    choice,
    dialog_cupy_ops,
    dialog_fast_ops,
    dialog_numpy_ops,
    exact_products,
    random_stream,
    table_gradient,
    touched_rows,
)

__all__ = [
    "bags", "choice", "dialog_cupy_ops", "dialog_fast_ops", "dialog_numpy_ops",
    "exact_products", "random_stream", "table_gradient", "touched_rows",
]  # fmt: skip
