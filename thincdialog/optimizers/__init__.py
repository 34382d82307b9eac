"""Optimizers in addition to Thinc's."""

from typing import Callable

from ..registry import registry
from . import lazy_adam, momentum_sgd, row_sparse, sparse_sgd

registry.optimizers.makes(Callable)
