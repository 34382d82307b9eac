"""WithoutOpenings: leave out the examples that open a conversation."""

from typing import List

from ..messages import SILENCE, Episode, Message
from ..registry import registry
from .mutator import Mutator


@registry.mutators("thincdialog.WithoutOpenings.v1")
def WithoutOpenings() -> Mutator:
    """Drop turns that answer silence, such as the first turn of a conversation that the label
    side opens. After `thincdialog.Flatten.v1`, the opening stays in the later contexts.

    RETURNS (Mutator): Episode to the same episode without those turns. If the first turn is
        dropped, the first remaining one takes over its `context`.
    """
    return without_openings


def without_openings(episode: Episode) -> List[Episode]:
    """Return the same episode without turns that answer silence."""
    kept = [message for message in episode if message["text"] != SILENCE]
    if kept and kept[0] is not episode[0] and "context" in episode[0]:
        kept[0] = Message({"context": episode[0]["context"], **kept[0]})
    return [kept]
