"""WordReverse: the words of every line backwards."""

from typing import Callable, List

from ..messages import Message
from ..registry import registry
from .mutator import Mutator


@registry.mutators("thincdialog.WordReverse.v1")
def WordReverse() -> Mutator:
    """Turn the words of every line around, to see how much a model makes of their order.

    Labels stay as they are. Before `thincdialog.Flatten.v1` only the partner's turns
    are changed; behind it all of the context is, the answers given so far among it.

    RETURNS (Mutator): Episode to an episode of as many turns.
    """
    return lambda episode: [[with_words(turn, lambda words: words[::-1]) for turn in episode]]


def with_words(message: Message, reorder: Callable[[List[str]], List[str]]) -> Message:
    """A copy whose lines have their words in another order, in `text` and `context`.

    message (Message): Stays as it is.
    reorder (Callable): Gives the words of one line, those between blanks, anew.
    """

    def reordered(text: str) -> str:
        return "\n".join(" ".join(reorder(line.split(" "))) for line in text.split("\n"))

    changed = Message(message, text=reordered(message["text"]))
    if "context" in message:
        changed["context"] = [(role, reordered(said)) for role, said in message["context"]]
    return changed
