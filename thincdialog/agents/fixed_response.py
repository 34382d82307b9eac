from typing import Sequence

from ..messages import Message, MessageBatch
from ..protocol import Observations
from ..registry import registry
from .conversation import ConversationAgent


@registry.agents("thincdialog.FixedResponse.v1")
class FixedResponseAgent(ConversationAgent):
    """Replies with the same text to every message.

    text (str): The reply.
    """

    id = "fixed_response"

    def __init__(self, text: str):
        super().__init__(history_size=1)
        self.text = text

    def batch_act(self, observations: Observations) -> Sequence[Message]:
        return MessageBatch({"text": [self.text] * len(observations)}, len(observations))
