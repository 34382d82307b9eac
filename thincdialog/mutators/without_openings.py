"""WithoutOpenings: leave out the examples in which nobody has spoken yet."""

from ..messages import SILENCE
from ..registry import registry
from .mutator import Mutator


@registry.mutators("thincdialog.WithoutOpenings.v1")
def WithoutOpenings() -> Mutator:
    """Drop turns that answer silence, such as the first turn of a conversation that the label
    side opens. Behind `thincdialog.Flatten.v1`, the opening stays in the later contexts.

    RETURNS (Mutator): Episode to the same episode without those turns.
    """
    return lambda episode: [[message for message in episode if message["text"] != SILENCE]]
