"""Averaged weights of an optimizer, for evaluation and saving."""

from contextlib import contextmanager
from typing import Any, Iterator

# The key under which optimizers see the one vector of all parameters.
PARAMETERS = (0, "parameters")


@contextmanager
def averaged_weights(parameters: Any, optimizer: Any) -> Iterator[bool]:
    """Put the moving average of the weights in their place for a while.

    parameters (FlatParameters): Whose values are exchanged and restored.
    optimizer (Optimizer): With ``averages``, a dict by key, or None.
    YIELDS (bool): Whether there is an average; if not, the weights stay.
    """
    averages = getattr(optimizer, "averages", None) or {}
    if PARAMETERS not in averages:
        yield False
        return
    with parameters.using(averages[PARAMETERS]):
        yield True
