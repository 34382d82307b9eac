"""WordReverse: put the words of every line in reverse order."""

from typing import Callable, List

from ..messages import Message
from ..registry import registry
from .mutator import Mutator


@registry.mutators("thincdialog.WordReverse.v1")
def WordReverse() -> Mutator:
    """Reverse the words of every line, to see how much a model depends on their order.

    Labels are not changed. Before `thincdialog.Flatten.v1`, only the partner's turns are
    changed; after it, the whole context is, including the answers given so far.

    RETURNS (Mutator): Episode to an episode of as many turns.
    """
    return lambda episode: [[with_words(turn, lambda words: words[::-1]) for turn in episode]]


def with_words(message: Message, reorder: Callable[[List[str]], List[str]]) -> Message:
    """Copy a message with the words of each line of `text` and `context` in another order.

    message (Message): The message, which is not changed.
    reorder (Callable): Takes the words of one line, split at spaces, and returns them in
        their new order.
    """

    def reordered(text: str) -> str:
        return "\n".join(" ".join(reorder(line.split(" "))) for line in text.split("\n"))

    changed = Message(message, text=reordered(message["text"]))
    if "context" in message:
        changed["context"] = [(role, reordered(said)) for role, said in message["context"]]
    return changed
