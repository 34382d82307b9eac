"""Draws the first values of embedding tables, unless saved values follow."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Callable, Iterator

from thinc.api import Ops
from thinc.types import Floats2d

_SAVED_FOLLOW: ContextVar[bool] = ContextVar("saved_values_follow", default=False)


@contextmanager
def saved_values_follow() -> Iterator[None]:
    """A stretch in which a model is set up whose weights are loaded next: tables begin with zeros,
    because drawing a large one takes longer than loading it."""
    token = _SAVED_FOLLOW.set(True)
    try:
        yield
    finally:
        _SAVED_FOLLOW.reset(token)


def first_table(init_E: Callable, ops: Ops, shape: tuple) -> Floats2d:
    """The first values of an embedding table: those of its initializer, or zeros within
    ``saved_values_follow``.

    shape (Tuple[int, int]): (n_rows, width).
    """
    return ops.alloc2f(*shape) if _SAVED_FOLLOW.get() else init_E(ops, shape)
