"""The contract of mutators: they rewrite episodes as they are read."""

import random
from typing import Callable, Iterator, List, Protocol, Union, runtime_checkable

from ..messages import Episode, Message
from ..registry import registry

Episodes = Callable[[], Iterator[Episode]]

# Takes one episode and gives the episodes that stand in its place, none or many.
#
# A mutator is called once for each episode each time the data is read, before anything
# is counted or shuffled. It must always give the same for the same episode (no draws
# but those of ``random_of``), must leave the given messages as they are
# (`Message(message, text=...)` makes a changed copy), and must keep `id` unique.
# Messages hold `labels` here, in evaluation too, and no `episode_done`: the last message
# of an episode ends it.
#
# One whose episodes always have a single turn says so with the attribute
# `single_turn = True`; then streamed data, too, travels in batches of columns.
EpisodeMutator = Callable[[Episode], List[Episode]]


@runtime_checkable
class SplitMutator(Protocol):
    """A mutator that must see more than one episode, to count them for instance.

    Each split works with a copy of its own (``copy.copy``), so that what it keeps
    from one reading to the next is of one split.
    """

    def rewrite(self, episodes: Episodes, split: str) -> Iterator[Episode]:
        """The episodes in place of a split's, each time it is read.

        episodes (Callable): Reads the split's episodes, as the mutators before this
            one give them; may be called more than once.
        split (str): "train", "dev" or "test".
        """


Mutator = Union[EpisodeMutator, SplitMutator]
registry.mutators.makes(Mutator)


def random_of(message: Message, seed: int) -> random.Random:
    """Draws that are the same whenever and wherever the message is read.

    message (Message): Its `id` seeds the draws.
    seed (int): The mutator's own seed.
    """
    # From a string, Python seeds by SHA-512: the same in every process and version.
    return random.Random(f"{seed}/{message.get('id', '')}")
