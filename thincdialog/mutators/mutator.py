"""The contract of mutators: they rewrite episodes as they are read."""

from typing import Callable, List

from ..messages import Message

Episode = List[Message]

# Takes one episode and gives the episodes that stand in its place, none or many.
#
# A mutator is called once for each episode each time the data is read, before anything
# is counted or shuffled. It must always give the same for the same episode (no draws
# that are not seeded by the message's `id`), must leave the given messages as they are
# (`Message(message, text=...)` makes a changed copy), and must keep `id` unique.
# Messages hold `labels` here, in evaluation too, and no `episode_done`: the last message
# of an episode ends it.
#
# One whose episodes always have a single turn says so with the attribute
# `single_turn = True`; then streamed data, too, travels in batches of columns.
Mutator = Callable[[Episode], List[Episode]]
