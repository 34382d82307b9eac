"""Initial values of embedding tables, which are not drawn if saved values will be loaded."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Callable, Iterator

from thinc.api import Ops
from thinc.types import Floats2d

_SAVED_FOLLOW: ContextVar[bool] = ContextVar("saved_values_follow", default=False)


@contextmanager
def saved_values_follow() -> Iterator[None]:
    """Set up models in this context whose weights will be loaded next. Their tables start with
    zeros, because drawing a large table takes longer than loading it."""
    token = _SAVED_FOLLOW.set(True)
    try:
        yield
    finally:
        _SAVED_FOLLOW.reset(token)


def first_table(init_E: Callable, ops: Ops, shape: tuple) -> Floats2d:
    """Return the initial values of an embedding table: those of its initializer, or zeros within
    ``saved_values_follow``.

    shape (Tuple[int, int]): (n_rows, width).
    """
    return ops.alloc2f(*shape) if _SAVED_FOLLOW.get() else init_E(ops, shape)
