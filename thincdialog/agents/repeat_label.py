from typing import Sequence

from ..messages import Message, column
from ..protocol import Observations
from ..registry import registry
from .conversation import ConversationAgent


@registry.agents("thincdialog.RepeatLabel.v1")
class RepeatLabelAgent(ConversationAgent):
    """Replies with the right answer, to find the highest possible score and to check the data.
    Gives no reply to examples without a label."""

    id = "repeat_label"

    def __init__(self) -> None:
        super().__init__(history_size=1)

    def batch_act(self, observations: Observations) -> Sequence[Message]:
        labels = column(observations, "labels")
        held_out = column(observations, "eval_labels")
        candidates = column(observations, "label_candidates")
        return self.ranked_replies(
            list(dict.fromkeys([*(known or right or ()), *(others or ())]))
            if known or right
            else []
            for known, right, others in zip(labels, held_out, candidates)
        )
