"""Array operations: Thinc's ops with seeded dropout, and kernels over bags of ids."""

from . import dialog_cupy_ops, dialog_fast_ops, dialog_numpy_ops
