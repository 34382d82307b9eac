"""Changes the order of words, in all that an agent reads."""

from typing import Callable, List

from ..messages import Message

Reorder = Callable[[List[str]], List[str]]


def with_words(message: Message, reorder: Reorder) -> Message:
    """A copy whose lines have their words in another order, in `text` and `context`.

    message (Message): Stays as it is.
    reorder (Reorder): Gives the words of one line, those between blanks, anew.
    """
    changed = Message(message, text=_reordered(message["text"], reorder))
    if "context" in message:
        changed["context"] = [
            (role, _reordered(said, reorder)) for role, said in message["context"]
        ]
    return changed


def _reordered(text: str, reorder: Reorder) -> str:
    return "\n".join(" ".join(reorder(line.split(" "))) for line in text.split("\n"))
