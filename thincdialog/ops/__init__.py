"""Array operations: Thinc's ops with seeded dropout, and kernels over bags of ids."""

from . import dialog_fast_ops, dialog_ops
