"""Count the texts that are encoded, such as truncated ones, if the caller wants these counts."""

from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Iterator, Optional

# One value per thread, because one thread may prepare a batch while another one computes.
_counts: ContextVar[Optional[Counter]] = ContextVar("counts", default=None)


@contextmanager
def counting(counts: Counter) -> Iterator[None]:
    """Count the texts that this thread encodes while the context is active. Outside of such a
    context, texts are not counted.

    counts (Counter): Name to number; the counts are added to it.
    """
    token = _counts.set(counts)
    try:
        yield
    finally:
        _counts.reset(token)


def count(name: str, n: int) -> None:
    """Add to a count, if this thread counts texts (see ``counting``).

    name (str): Name of the count, such as "contexts" or "truncated_contexts".
    n (int): Number to add.
    """
    counts = _counts.get()
    if counts is not None:
        counts[name] += n
