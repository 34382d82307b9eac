"""Optimizers beside Thinc's own."""

from thinc.api import Optimizer

from ..registry import registry
from . import lazy_adam, row_sparse, sparse_sgd

registry.optimizers.makes(Optimizer)
