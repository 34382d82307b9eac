"""WordReverse: the words of every line backwards."""

from ..registry import registry
from .mutator import Mutator
from .words import with_words


@registry.mutators("thincdialog.WordReverse.v1")
def WordReverse() -> Mutator:
    """Turn the words of every line around, to see how much a model makes of their order.

    Labels stay as they are. Before `thincdialog.Flatten.v1` only the partner's turns
    are changed; behind it all of the context is, the answers given so far among it.

    RETURNS (Mutator): Episode to an episode of as many turns.
    """
    return lambda episode: [[with_words(turn, lambda words: words[::-1]) for turn in episode]]
