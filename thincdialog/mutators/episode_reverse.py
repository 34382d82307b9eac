"""EpisodeReverse: the partner's turns backwards."""

from ..registry import registry
from .moved_texts import with_texts_moved
from .mutator import Mutator


@registry.mutators("thincdialog.EpisodeReverse.v1")
def EpisodeReverse(keep_context: bool = True) -> Mutator:
    """Turn the order of the partner's texts around, to see how much a model makes of the
    course of a conversation. Labels and all else stay where they are.

    Put it before `thincdialog.Flatten.v1`: an episode of one turn stays as it is.

    keep_context (bool): Leave the first text's lines but its last, such as a persona,
        at the beginning.
    RETURNS (Mutator): Episode to an episode of as many turns.
    """
    return lambda episode: [with_texts_moved(episode, keep_context, lambda texts: texts[::-1])]
