"""Optimizers beside Thinc's own."""

from . import lazy_adam, momentum_sgd, row_sparse, sparse_sgd
