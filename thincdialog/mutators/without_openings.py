"""WithoutOpenings: leave out the examples in which nobody has spoken yet."""

from typing import List

from ..messages import SILENCE
from ..registry import registry
from .mutator import Episode, Mutator


@registry.mutators("thincdialog.WithoutOpenings.v1")
def WithoutOpenings() -> Mutator:
    """Drop turns that answer silence, such as the first turn of a conversation that
    the label side opens. Put it behind `thincdialog.Flatten.v1`, so that the opening
    stays in the context of the turns that follow.

    RETURNS (Mutator): Episode to the same episode without those turns.
    """
    return without_openings


def without_openings(episode: Episode) -> List[Episode]:
    """The episode without the turns whose text is `__SILENCE__`."""
    return [[message for message in episode if message["text"] != SILENCE]]
