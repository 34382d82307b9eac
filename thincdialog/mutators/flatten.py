"""Flatten: make each turn a separate example that includes its context."""

from typing import List

from ..errors import ConfigError, Problem
from ..messages import PARTNER, SELF, SILENCE, Episode, Message, Turn
from ..registry import registry


@registry.mutators("thincdialog.Flatten.v1")
class Flatten:
    """Make each turn a single-turn episode whose `context` holds the turns before it.

    With turns x1 y1 ... x4 y4, context_length 3 and labels included, the fourth
    example is x2 y2 x3 y3 x4 -> y4; with -1 and without labels it is
    x1 x2 x3 x4 -> y4. If a turn has several labels, the context holds the first. Silence
    (`__SILENCE__`) before an opening is not a turn and is left out of contexts.

    context_length (int): Turns of the partner, 1 or more, including the current one; -1 for all.
    include_labels (bool): Whether the answers given so far are part of the context.
    squash (bool): Whether the context is put into `text`, one turn a line, as ParlAI does it: for
        an agent that reads nothing but `text`. The example has no `context` then.
    RAISES (ConfigError): If context_length is 0 or less than -1.
    """

    single_turn = True

    def __init__(self, context_length: int = -1, include_labels: bool = True, squash: bool = False):
        if context_length == 0 or context_length < -1:
            text = f"'context_length' of thincdialog.Flatten.v1 is {context_length}"
            raise ConfigError([Problem("", text, "give 1 or more turns, or -1 for all")])
        self.context_length = context_length
        self.include_labels = include_labels
        self.squash = squash

    def __call__(self, episode: Episode) -> List[Episode]:
        """Return a single-turn episode for each turn."""
        # All turns so far, after those of a context that the episode already has.
        history: List[Turn] = list(episode[0].get("context", ())) if episode else []
        starts: List[int] = []  # Where in `history` each turn of the partner starts.
        examples: List[Episode] = []
        for message in episode:
            starts.append(len(history))
            is_cut = 0 < self.context_length <= len(starts)
            first = starts[-self.context_length] if is_cut else 0
            example = Message(message, context=history[first:])
            if self.squash:
                said = [text for _, text in example.pop("context")]
                example["text"] = "\n".join([*said, message["text"]])
            examples.append([example])
            if message["text"] != SILENCE:
                history.append((PARTNER, message["text"]))
            labels = message.get("labels")
            if self.include_labels and labels:
                history.append((SELF, labels[0]))
        return examples
