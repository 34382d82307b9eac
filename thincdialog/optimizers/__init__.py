"""Optimizers beside Thinc's own."""

from . import lazy_adam, row_sparse, sparse_sgd
