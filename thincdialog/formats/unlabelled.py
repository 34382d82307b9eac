"""Whether examples may come without labels."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Iterator

_needs: ContextVar[bool] = ContextVar("needs_labels", default=True)


def needs_labels() -> bool:
    """Whether an example without a label is an error, as in training."""
    return _needs.get()


@contextmanager
def reading_unlabelled() -> Iterator[None]:
    """A stretch in which such examples are read, so that they can be answered."""
    token = _needs.set(False)
    try:
        yield
    finally:
        _needs.reset(token)
