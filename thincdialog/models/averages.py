"""Averaged weights of an optimizer, for evaluation and saving."""

from contextlib import contextmanager
from typing import Any, Iterator

from .parameters import KEY, FlatParameters


@contextmanager
def averaged_weights(parameters: FlatParameters, optimizer: Any) -> Iterator[bool]:
    """Put the moving average of the weights in their place for a while.

    parameters (FlatParameters): Whose values are exchanged and restored.
    optimizer (Optimizer): With ``averages``, a dict by key, or None.
    YIELDS (bool): Whether an average was taken; if not, the weights stay.
    """
    averages = getattr(optimizer, "averages", None) or {}
    # Workers have room for one before the first is taken: it holds the weights of the start.
    first = getattr(optimizer, "average_every", 0)
    if KEY not in averages or (first and optimizer.nr_update[KEY] < first):
        yield False
        return
    with parameters.using(averages[KEY]):
        yield True
