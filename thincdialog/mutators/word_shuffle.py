"""WordShuffle: put the words of every line in random order."""

from ..messages import Message
from ..registry import registry
from .mutator import Mutator, random_of
from .word_reverse import with_words


@registry.mutators("thincdialog.WordShuffle.v1")
def WordShuffle(seed: int = 0) -> Mutator:
    """Shuffle the words of every line, to see how much a model depends on their order.

    An example is shuffled in the same way in every epoch. Labels are not changed. Before
    `thincdialog.Flatten.v1`, only the partner's turns are changed; after it, the whole
    context is, including the answers given so far.

    seed (int): Seed of the draws, together with the example's id.
    RETURNS (Mutator): Episode to an episode of as many turns.
    """

    def shuffled(message: Message) -> Message:
        draws = random_of(message, seed)
        return with_words(message, lambda words: draws.sample(words, len(words)))

    return lambda episode: [[shuffled(message) for message in episode]]
