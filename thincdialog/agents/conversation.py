"""The base of agents that keep the conversation."""

from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence

from ..data import Tokenizer
from ..files.json_file import read_state, write_json
from ..messages import PARTNER, SELF, SILENCE, Message, MessageBatch, Turn
from ..protocol import Agent, ReadingOptions

USE_REPLIES = ("label", "model", "none")


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

    conversation (List[Turn]): The final turns so far, oldest first.
    heard (List[Turn]): These, and the turns that wait for an answer. Both lists are replaced, never
        changed, so that lists returned to callers stay the same.
    """

    takes_batches = True

    def __init__(self, *, history_size: int = -1, use_reply: str = "label"):
        if use_reply not in USE_REPLIES:
            raise ValueError(f"use_reply = '{use_reply}', expected one of {', '.join(USE_REPLIES)}")
        if history_size == 0 or history_size < -1:
            text = f"history_size = {history_size}, but it includes the current turn"
            raise ValueError(f"{text}: use 1 or more turns, or -1 for all")
        self.use_reply, self.history_size = use_reply, history_size
        self._set_conversation([])

    def _set_conversation(self, turns: List[Turn]) -> None:
        self.conversation = self.heard = turns

    def reading(self) -> ReadingOptions:
        return ReadingOptions(self.history_size, self.use_reply)

    def observe(self, message: Message) -> Message:
        super().observe(message)
        before = message.get("context")
        observation = Message(message)
        if before is None:
            before = self.heard
            if before:
                observation["context"] = before
        self.heard = [*before, (PARTNER, message.get("text") or "")]
        size = self.history_size
        observation["turns"] = self.heard[-size:] if size > 0 else self.heard
        self.observation = observation
        return observation

    def self_observe(self, message: Message) -> None:
        observation = self.observation or Message()
        super().self_observe(message)
        if observation.get("episode_done"):
            self._set_conversation([])
            return
        turns, text = self.heard, message.get("text")
        if turns and turns[-1][1] == SILENCE:
            turns = turns[:-1]
        if self.use_reply == "label" and observation.all_labels:
            text = observation.all_labels[0]
        if text is not None and self.use_reply != "none":
            turns = [*turns, (SELF, text)]
        self._set_conversation(turns)

    def conversation_state(self) -> Any:
        """Return the turns before those that wait for an answer, as a list of [role, text]."""
        return [[role, text] for role, text in self.conversation]

    def set_conversation_state(self, value: Any) -> None:
        super().set_conversation_state(value)
        self._set_conversation([(role, text) for role, text in value])

    def reset(self) -> None:
        super().reset()
        self._set_conversation([])

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
