"""Averaged weights of an optimizer, for evaluation and saving."""

from contextlib import contextmanager
from typing import Any, Iterator

from .parameters import KEY, FlatParameters


@contextmanager
def averaged_weights(parameters: FlatParameters, optimizer: Any) -> Iterator[bool]:
    """Put the moving average of the weights in their place for a while.

    parameters (FlatParameters): Whose values are exchanged and restored.
    optimizer (Optimizer): With ``averages``, a dict by key, or None.
    YIELDS (bool): Whether there is an average; if not, the weights stay.
    """
    averages = getattr(optimizer, "averages", None) or {}
    if KEY not in averages:
        yield False
        return
    with parameters.using(averages[KEY]):
        yield True
