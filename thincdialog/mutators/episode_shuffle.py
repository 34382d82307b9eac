"""EpisodeShuffle: put the partner's turns in random order."""

from typing import List

from ..messages import Episode, Message
from ..registry import registry
from .episode_reverse import with_texts_moved
from .mutator import Mutator, random_of


@registry.mutators("thincdialog.EpisodeShuffle.v1")
def EpisodeShuffle(seed: int = 0, keep_context: bool = True) -> Mutator:
    """Shuffle the partner's texts within their episode, to see how much a model depends on
    the course of a conversation. Labels and all other fields stay where they are.

    An episode is shuffled in the same way in every epoch. Put it before
    `thincdialog.Flatten.v1`: it does not change episodes of one turn.

    seed (int): Seed of the draws, together with the id of the episode's first example.
    keep_context (bool): Leave the lines before the last one of the first text (a persona) in place.
    RETURNS (Mutator): Episode to an episode of as many turns.
    """

    def shuffled(episode: Episode) -> List[Episode]:
        draws = random_of(episode[0] if episode else Message(), seed)
        reorder = lambda texts: draws.sample(texts, len(texts))  # noqa: E731
        return [with_texts_moved(episode, keep_context, reorder)]

    return shuffled
