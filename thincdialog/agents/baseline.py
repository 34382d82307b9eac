"""Agents without weights, to compare a model with."""

from pathlib import Path
from typing import Any, Callable, Dict, Optional, Sequence

from ..data import Tokenizer
from ..files.json_file import read_state, write_json
from ..messages import Message, MessageBatch
from ..protocol import Observations
from ..teachers import Teacher
from .conversation import RANKED, ConversationAgent


class BaselineAgent(ConversationAgent):
    """Base: a subclass says what it learns (``learn``), what of it is saved
    (``state``), and how it answers. It has the life-cycle of a ``ModelAgent``."""

    def initialize(
        self,
        train: Teacher,
        *,
        tokenizer: Optional[Tokenizer] = None,
        seed: int = 0,
        progress: Optional[Callable[[int], None]] = None,
    ) -> None:
        """Learn from the training data, in one go.

        tokenizer (Optional[Tokenizer]): Not used: baselines read text their own way.
        seed (int): Seed of what is drawn.
        progress (Optional[Callable]): Not used.
        """
        self.learn(train, seed)

    def learn(self, train: Teacher, seed: int) -> None:
        """Take what is needed from the training data."""

    def batch_act(self, observations: Observations) -> Sequence[Message]:
        """Answer many conversations at once, each by itself."""
        raise NotImplementedError

    def state(self) -> Dict[str, Any]:
        """What ``learn`` found, as JSON values."""
        return {}

    def set_state(self, state: Dict[str, Any]) -> None:
        """Take back what ``state`` gave.

        RAISES (KeyError, TypeError, ValueError): If it is not such a state.
        """

    def to_disk(self, folder: Path) -> None:
        """Write what was learnt into the folder of a saved model."""
        write_json(folder / "agent.json", self.state())

    def from_disk(self, folder: Path, *, tokenizer: Optional[Tokenizer] = None) -> None:
        """Read what ``to_disk`` wrote into an agent built from the same config.

        RAISES (ModelError): If a file is missing, damaged, or of another agent.
        """
        read_state(folder, self.set_state)


def ranked_replies(rankings: Sequence[Sequence[str]]) -> MessageBatch:
    """Replies from ranked candidates, the best first; none for an empty ranking."""
    columns: Dict[str, Sequence[Any]] = {
        "text": [texts[0] if texts else None for texts in rankings],
        "text_candidates": [texts[:RANKED] if texts else None for texts in rankings],
    }
    return MessageBatch(columns, len(rankings))
