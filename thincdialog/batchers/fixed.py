"""Batches of one fixed size."""

from ..errors import ConfigError, Problem
from ..registry import registry
from .batcher import Batcher


@registry.batchers("thincdialog.Fixed.v1")
def Fixed(size: int) -> Batcher:
    """Batches of ``size`` conversations; fewer only where no more are left.

    size (int): Conversations in a batch, 1 or more.
    RAISES (ConfigError): If size is less than 1.
    """
    if size < 1:
        text = f"'size' of thincdialog.Fixed.v1 is {size}"
        raise ConfigError([Problem("", text, "give a number of at least 1")])
    return Batcher(size)
