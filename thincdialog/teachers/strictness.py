"""Whether data with labels outside their candidates is refused, as training must, or read,
so that all such labels can be counted."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Iterator

_refuses: ContextVar[bool] = ContextVar("refuses_outside_labels", default=True)


def refuses_outside_labels() -> bool:
    """Whether a label that is not among its candidates is an error."""
    return _refuses.get()


@contextmanager
def reading_outside_labels() -> Iterator[None]:
    """A stretch in which labels are read whether they are among their candidates or not."""
    token = _refuses.set(False)
    try:
        yield
    finally:
        _refuses.reset(token)
