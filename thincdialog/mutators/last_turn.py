"""LastTurn: make each turn a separate example, without the turns before it."""

from typing import List

from ..messages import Episode, Message
from ..registry import registry


@registry.mutators("thincdialog.LastTurn.v1")
class LastTurn:
    """Make each turn a separate episode without the turns before it, to see how much a model uses
    them.

    keep_context (bool): Put the first text's lines except its last (a persona) before each text.
    """

    single_turn = True

    def __init__(self, keep_context: bool = True):
        self.keep_context = keep_context

    def __call__(self, episode: Episode) -> List[Episode]:
        """Return a single-turn episode for each turn."""
        lines, line_end, _ = episode[0]["text"].rpartition("\n") if episode else ("", "", "")
        opening = lines + line_end if self.keep_context else ""
        examples: List[Episode] = []
        for turn, message in enumerate(episode):
            changed = Message(message, text=opening + message["text"] if turn else message["text"])
            if "context" in message:
                changed["context"] = []
            examples.append([changed])
        return examples
