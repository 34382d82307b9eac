"""Checks of the values that custom optimizers return."""

from functools import partial
from typing import Any, Callable

import numpy

from ..contract import Returned, called, is_users


def _is_step(value: Any, key: Any = None, weights: Any = None, *rest: Any) -> bool:
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    stepped = value[0]
    has_kind = getattr(stepped, "dtype", None) == numpy.float32
    is_like = has_kind and stepped.shape == weights.shape
    return bool(is_like and numpy.isfinite(float(stepped.sum(dtype="d"))))


_STEP = Returned(
    "the pair (weights, gradient), float32 and finite, in the shapes that it was given", _is_step
)


def stepping(optimizer: Any) -> Callable:
    """Return a Thinc optimizer as a function; the results of a custom optimizer are checked.

    optimizer (Any): (key, weights, gradient) to (weights, gradient).
    """
    return partial(called, optimizer, _STEP) if is_users(optimizer) else optimizer
