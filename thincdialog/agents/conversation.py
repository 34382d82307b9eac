"""The conversation as an agent sees it, and agents that keep one."""

from typing import List, Sequence

from ..messages import PARTNER, SELF, SILENCE, Message, MessageBatch, Turn, column
from ..protocol import Agent

USE_REPLIES = ("label", "model", "none")
# Longest ranking in a reply; a longer list is cut after its best.
RANKED = 100


class Conversation:
    """The last turns of a conversation, oldest first.

    history_size (int): Turns to keep, the current one counted; -1 keeps all.
    RAISES (ValueError): If history_size is 0 or below -1.
    """

    __slots__ = ("turns", "history_size")

    def __init__(self, history_size: int = -1):
        if history_size == 0 or history_size < -1:
            raise ValueError(
                f"history_size = {history_size}, but it counts turns with the current one "
                "among them: use 1 or more, or -1 for all"
            )
        self.history_size = history_size
        self.turns: List[Turn] = []

    def add(self, role: int, text: str) -> List[Turn]:
        """Append a turn.

        role (int): ``PARTNER`` or ``SELF``.
        RETURNS (List[Turn]): All turns kept. A new list each time, so what was
            handed out before does not change later.
        """
        return self.follow(self.turns, role, text)

    def follow(self, context: Sequence[Turn], role: int, text: str) -> List[Turn]:
        """Like ``add``, but the turns before are ``context``, whatever was kept."""
        turns = [*context, (role, text)]
        if 0 < self.history_size < len(turns):
            turns = turns[-self.history_size :]
        self.turns = turns
        return turns


class ConversationAgent(Agent):
    """An agent that answers from the turns of its conversation.

    ``observe`` adds what the partner said and returns the message with a field
    more: ``turns`` (List[Turn]), the history with the current text as its last
    turn. ``self_observe`` adds the agent's own turn and forgets the conversation
    when the observed message ended the episode. A message that brings its own
    ``context`` (as flattened episodes do) replaces the history. The silence that the
    agent hears when it opens a conversation is seen once, and no part of the history.

    history_size (int): Turns to keep, the current one counted; -1 keeps all.
    use_reply (str): What becomes the agent's turn in its history: "label" (the
        observed message's first label, or the reply if it has none), "model" (the
        reply) or "none" (nothing: only the partner's turns are kept).
    RAISES (ValueError): If either value is not allowed.
    """

    def __init__(self, *, history_size: int = -1, use_reply: str = "label"):
        if use_reply not in USE_REPLIES:
            raise ValueError(f"use_reply = '{use_reply}', expected one of {', '.join(USE_REPLIES)}")
        self.use_reply = use_reply
        self.conversation = Conversation(history_size)

    @property
    def history_size(self) -> int:
        return self.conversation.history_size

    def observe(self, message: Message) -> Message:
        super().observe(message)
        context = message.get("context")
        before = self.conversation.turns if context is None else context
        observation = Message(message)
        observation["turns"] = self.conversation.follow(before, PARTNER, message.get("text") or "")
        self.observation = observation
        return observation

    def self_observe(self, message: Message) -> None:
        observation = self.observation or Message()
        super().self_observe(message)
        if observation.get("episode_done"):
            self.conversation = Conversation(self.history_size)
            return
        if observation.get("text") == SILENCE:
            # Nobody said it, so it is no turn of what follows.
            self.conversation.turns = self.conversation.turns[:-1]
        text = message.get("text")
        if self.use_reply == "label" and observation.all_labels:
            text = observation.all_labels[0]
        if text is not None and self.use_reply != "none":
            self.conversation.add(SELF, text)

    def batch_observe(self, messages: Sequence[Message]) -> MessageBatch:
        """Observe messages that each carry their whole context; keeps nothing.

        RETURNS (MessageBatch): Their columns, and ``turns`` as in ``observe``.
        """
        if isinstance(messages, MessageBatch):
            columns = dict(messages.columns)
        else:
            names = dict.fromkeys(name for message in messages for name in message)
            columns = {name: column(messages, name) for name in names}
        texts = columns.get("text") or [None] * len(messages)
        contexts = columns.get("context")
        if contexts is None or self.history_size == 1:
            columns["turns"] = [[(PARTNER, text or "")] for text in texts]
        else:
            # The last history_size - 1 turns before the current one; all for -1.
            kept = slice(1 - self.history_size if self.history_size > 0 else None, None)
            columns["turns"] = [
                [*(context or ())[kept], (PARTNER, text or "")]
                for context, text in zip(contexts, texts)
            ]
        return MessageBatch(columns, len(messages))

    def reset(self) -> None:
        super().reset()
        self.conversation = Conversation(self.history_size)
