"""The conversation as an agent sees it, and agents that keep one."""

from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from ..data import Tokenizer
from ..files.json_file import read_state, write_json
from ..messages import PARTNER, SELF, SILENCE, Message, MessageBatch, Turn
from ..protocol import Agent, ReadingOptions

USE_REPLIES = ("label", "model", "none")


class Conversation:
    """The turns of a conversation, oldest first.

    history_size (int): Turns to see, the current one counted; -1 for all.
    turns (Sequence[Turn]): Those before; kept as they are.
    RAISES (ValueError): If history_size is 0 or below -1.
    """

    __slots__ = ("turns", "heard", "history_size")

    def __init__(self, history_size: int = -1, turns: Sequence[Turn] = ()):
        if history_size == 0 or history_size < -1:
            raise ValueError(
                f"history_size = {history_size}, but it counts turns with the current one "
                "among them: use 1 or more, or -1 for all"
            )
        self.history_size = history_size
        # What is settled; and the same with what still waits for an answer. These lists
        # are replaced, never changed, so what was handed out stays as it was.
        self.turns: List[Turn] = list(turns)
        self.heard = self.turns

    def add(self, role: int, text: str) -> List[Turn]:
        """Append a turn, after those that were heard.

        role (int): ``PARTNER`` or ``SELF``.
        RETURNS (List[Turn]): The last turns, ``history_size`` of them.
        """
        seen = self.hear(self.heard, role, text)
        self.turns = self.heard
        return seen

    def hear(self, before: Sequence[Turn], role: int, text: str) -> List[Turn]:
        """A turn that waits for an answer; ``settle`` makes it part of ``turns``.

        before (Sequence[Turn]): The turns before it, whatever was heard.
        RETURNS (List[Turn]): The last turns, ``history_size`` of them.
        """
        self.heard = heard = [*before, (role, text)]
        return heard[-self.history_size :] if self.history_size > 0 else heard

    def settle(self) -> None:
        """Keep what was heard, except silence."""
        if self.heard and self.heard[-1][1] == SILENCE:
            self.heard = self.heard[:-1]
        self.turns = self.heard


class ConversationAgent(Agent):
    """An agent that answers from the turns of its conversation.

    ``observe`` adds what the partner said and returns the message with two fields
    more: ``turns`` (List[Turn]), the history with the current text as its last
    turn; and ``context``, all turns before it, where there are any. ``self_observe``
    keeps it, adds the agent's own turn and forgets the conversation when the observed
    message ended the episode. A message that brings its own
    ``context`` (as flattened episodes do) replaces the history. The silence that the
    agent hears when it opens a conversation is seen once, and no part of the history.

    history_size (int): Turns in ``turns``, the current one counted; -1 for all.
    use_reply (str): What becomes the agent's turn in its history: "label" (the
        observed message's first label, or the reply if it has none), "model" (the
        reply) or "none" (nothing: only the partner's turns are kept).
    RAISES (ValueError): If either value is not allowed.
    """

    takes_batches = True

    def __init__(self, *, history_size: int = -1, use_reply: str = "label"):
        if use_reply not in USE_REPLIES:
            raise ValueError(f"use_reply = '{use_reply}', expected one of {', '.join(USE_REPLIES)}")
        self.use_reply = use_reply
        self.conversation = Conversation(history_size)

    @property
    def history_size(self) -> int:
        return self.conversation.history_size

    def reading(self) -> ReadingOptions:
        return ReadingOptions(self.history_size, self.use_reply)

    def observe(self, message: Message) -> Message:
        super().observe(message)
        before = message.get("context")
        observation = Message(message)
        if before is None:
            before = self.conversation.heard
            if before:
                observation["context"] = before
        observation["turns"] = self.conversation.hear(before, PARTNER, message.get("text") or "")
        self.observation = observation
        return observation

    def self_observe(self, message: Message) -> None:
        observation = self.observation or Message()
        super().self_observe(message)
        if observation.get("episode_done"):
            self.conversation = Conversation(self.history_size)
            return
        self.conversation.settle()
        text = message.get("text")
        if self.use_reply == "label" and observation.all_labels:
            text = observation.all_labels[0]
        if text is not None and self.use_reply != "none":
            self.conversation.add(SELF, text)

    def conversation_state(self) -> Any:
        """The turns before those that wait for an answer: [role, text] each."""
        return [[role, text] for role, text in self.conversation.turns]

    def set_conversation_state(self, value: Any) -> None:
        super().set_conversation_state(value)
        turns = [(role, text) for role, text in value]
        self.conversation = Conversation(self.history_size, turns)

    def reset(self) -> None:
        super().reset()
        self.conversation = Conversation(self.history_size)

    def state(self) -> Dict[str, Any]:
        """What ``initialize`` found, as JSON values; weights and arrays are not among it."""
        return {}

    def set_state(self, state: Dict[str, Any]) -> None:
        """Take back what ``state`` gave.

        RAISES (KeyError, TypeError, ValueError): If it is not such a state.
        """

    def to_disk(self, folder: Path) -> None:
        write_json(folder / "agent.json", self.state())

    def from_disk(self, folder: Path, *, tokenizer: Optional[Tokenizer] = None) -> None:
        read_state(folder, self.set_state)


def ranked_replies(rankings: Sequence[Sequence[str]], n_ranked: int) -> MessageBatch:
    """Replies from ranked candidates, the best first; none for an empty ranking.

    n_ranked (int): How many candidates of each ranking are kept.
    """
    columns: Dict[str, Sequence[Any]] = {
        "text": [texts[0] if texts else None for texts in rankings],
        "text_candidates": [texts[:n_ranked] if texts else None for texts in rankings],
    }
    return MessageBatch(columns, len(rankings))
