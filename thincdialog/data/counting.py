"""Counts of the texts that are read, which the caller of the reader keeps or drops."""

from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Iterator, Optional

# Per thread: a batch may be read ahead in one while another computes.
_counts: ContextVar[Optional[Counter]] = ContextVar("counts", default=None)


@contextmanager
def counting(counts: Counter) -> Iterator[None]:
    """Count the texts that this thread reads for a while. Otherwise they are not counted.

    counts (Counter): Name to number; is added to.
    """
    token = _counts.set(counts)
    try:
        yield
    finally:
        _counts.reset(token)


def count(name: str, n: int) -> None:
    """Add to a count of the texts that are read.

    name (str): Such as "tokens" or "truncated_contexts".
    n (int): How many.
    """
    counts = _counts.get()
    if counts is not None:
        counts[name] += n
