"""ContextShuffle: put all lines before the last one in random order."""

from ..messages import Message
from ..registry import registry
from .mutator import Mutator, random_of


@registry.mutators("thincdialog.ContextShuffle.v1")
def ContextShuffle(seed: int = 0) -> Mutator:
    """Shuffle the lines before the last one of each text, such as a persona, and the turns of
    `context`, to see how much a model depends on their order.

    The last line, which the agent replies to, stays last; labels do not change. An example is
    shuffled in the same way in every epoch. To shuffle the turns of a conversation, put this
    mutator after `thincdialog.Flatten.v1`; each turn keeps its speaker.

    seed (int): Seed of the draws, together with the example's id.
    RETURNS (Mutator): Episode to an episode of as many turns.
    """

    def shuffled(message: Message) -> Message:
        draws = random_of(message, seed)
        *lines, last = message["text"].split("\n")
        draws.shuffle(lines)
        changed = Message(message, text="\n".join([*lines, last]))
        if "context" in message:
            changed["context"] = draws.sample(message["context"], len(message["context"]))
        return changed

    return lambda episode: [[shuffled(message) for message in episode]]
