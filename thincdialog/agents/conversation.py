"""The conversation as an agent sees it, and the base of agents that keep one."""

from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence

from ..data import Tokenizer
from ..files.json_file import read_state, write_json
from ..messages import PARTNER, SELF, SILENCE, Message, MessageBatch, Turn
from ..protocol import Agent, ReadingOptions

USE_REPLIES = ("label", "model", "none")


class Conversation:
    """Hold the turns of a conversation, oldest first.

    history_size (int): Number of turns to return, including the current one; -1 for all.
    turns (Sequence[Turn]): Turns so far.
    RAISES (ValueError): If history_size is 0 or below -1.
    """

    __slots__ = ("turns", "heard", "history_size")

    def __init__(self, history_size: int = -1, turns: Sequence[Turn] = ()):
        if history_size == 0 or history_size < -1:
            raise ValueError(
                f"history_size = {history_size}, but it includes the current turn: "
                "use 1 or more turns, or -1 for all"
            )
        self.history_size = history_size
        # `turns` are final; `heard` also has the turns that wait for an answer. Both lists are
        # replaced, never changed, so that lists returned to callers stay the same.
        self.turns: List[Turn] = list(turns)
        self.heard = self.turns

    def add(self, role: int, text: str) -> List[Turn]:
        """Append a turn after the turns heard so far.

        role (int): ``PARTNER`` or ``SELF``.
        RETURNS (List[Turn]): The last ``history_size`` turns.
        """
        seen = self.hear(self.heard, role, text)
        self.turns = self.heard
        return seen

    def hear(self, before: Sequence[Turn], role: int, text: str) -> List[Turn]:
        """Hear a turn that waits for an answer; ``settle`` adds it to ``turns``.

        before (Sequence[Turn]): The turns before it, which replace those heard so far.
        RETURNS (List[Turn]): The last ``history_size`` turns.
        """
        self.heard = heard = [*before, (role, text)]
        return heard[-self.history_size :] if self.history_size > 0 else heard

    def settle(self) -> None:
        """Make the heard turns final, without a last turn that is silence."""
        if self.heard and self.heard[-1][1] == SILENCE:
            self.heard = self.heard[:-1]
        self.turns = self.heard


class ConversationAgent(Agent):
    """Answers from the turns of a conversation.

    ``observe`` adds the partner's text and returns the message with two more fields: ``turns``
    (List[Turn]), the history with the current text as its last turn, and ``context``, all turns
    before it, if there are any. ``self_observe`` makes the partner's turn final and adds the
    agent's own turn. If the observed message ended the episode, it forgets the conversation
    instead. A message that has its own ``context`` (as in flattened episodes) replaces the history.
    The silence that the agent observes when it opens a conversation is passed on once, but is not
    kept in the history.

    history_size (int): Number of turns in ``turns``, including the current one; -1 for all.
    use_reply (str): Which text becomes the agent's turn in its history: "label" (the observed
        message's first label, or the reply if it has none), "model" (the reply) or "none" (only the
        partner's turns are kept).
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
        """Return the turns before those that wait for an answer, as a list of [role, text]."""
        return [[role, text] for role, text in self.conversation.turns]

    def set_conversation_state(self, value: Any) -> None:
        super().set_conversation_state(value)
        turns = [(role, text) for role, text in value]
        self.conversation = Conversation(self.history_size, turns)

    def reset(self) -> None:
        super().reset()
        self.conversation = Conversation(self.history_size)

    def state(self) -> Dict[str, Any]:
        """Return the results of ``initialize`` as JSON values, without weights and arrays."""
        return {}

    def set_state(self, state: Dict[str, Any]) -> None:
        """Restore a state that ``state`` returned.

        RAISES (KeyError, TypeError, ValueError): If the value is not a valid state.
        """

    def to_disk(self, folder: Path) -> None:
        write_json(folder / "agent.json", self.state())

    def from_disk(self, folder: Path, *, tokenizer: Optional[Tokenizer] = None) -> None:
        read_state(folder, self.set_state)

    def ranked_replies(self, rankings: Iterable[Sequence[str]]) -> MessageBatch:
        """Make replies from ranked candidates: the text of each is the best candidate. An empty
        ranking gives a reply without text.

        rankings (Iterable[Sequence[str]]): Candidates of each reply, best first.
        """
        ranked = list(rankings)
        columns: Dict[str, Sequence[Any]] = {
            "text": [texts[0] if texts else None for texts in ranked],
            "text_candidates": [texts[: self.n_ranked] if texts else None for texts in ranked],
        }
        return MessageBatch(columns, len(ranked))
