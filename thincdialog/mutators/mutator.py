"""The interface of mutators, which rewrite episodes as they are read."""

import random
from typing import Callable, Iterator, List, Protocol, Union, runtime_checkable

from ..messages import Episode, Message
from ..registry import registry

Episodes = Callable[[], Iterator[Episode]]

# Takes one episode and returns the episodes that replace it, none or many.
#
# A mutator is called once for each episode each time the data is read, before episodes
# are counted or shuffled. It must always return the same result for the same episode (so it
# must draw only from ``random_of``), must not change its messages (`Message(message,
# text=...)` makes a changed copy), and must keep `id` unique. Here, messages have `labels`,
# in evaluation, too, but no `episode_done`: the last message of an episode ends it.
#
# If its episodes always have a single turn, set the attribute `single_turn = True`; then
# streamed data, too, is passed on in batches of columns.
EpisodeMutator = Callable[[Episode], List[Episode]]


@runtime_checkable
class SplitMutator(Protocol):
    """Define a mutator that must see more than one episode, for instance to count them.

    Each split has its own copy of the mutator (``copy.copy``), so state that it keeps between
    readings belongs to one split.
    """

    def rewrite(self, episodes: Episodes, split: str) -> Iterator[Episode]:
        """Yield the episodes that replace those of a split; called each time it is read.

        episodes (Callable): Reads the split's episodes, as the mutators before this
            one return them; may be called more than once.
        split (str): "train", "dev" or "test".
        """


Mutator = Union[EpisodeMutator, SplitMutator]
registry.mutators.makes(Mutator)


def random_of(message: Message, seed: int) -> random.Random:
    """Return a generator whose draws are the same whenever and wherever the message is read.

    message (Message): Its `id` seeds the draws.
    seed (int): The mutator's own seed.
    """
    # From a string, Python seeds by SHA-512: the same in every process and version.
    return random.Random(f"{seed}/{message.get('id', '')}")
