"""Optimizers beside Thinc's own."""

from . import lazy_adam

__all__ = ["lazy_adam"]
