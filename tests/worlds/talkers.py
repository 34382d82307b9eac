"""Agents and data of the tests of worlds: they keep a protocol of all they hear."""

from typing import Dict, List

from thincdialog.messages import Message, MessageBatch, column
from thincdialog.protocol import Agent
from thincdialog.teachers.teacher import Teacher


def make_episodes(lengths: List[int]) -> List[List[Message]]:
    """Episodes of so many turns; text, label and id tell the episode and the turn."""
    return [
        [
            Message(text=f"say {number} {turn}", labels=[f"answer {number} {turn}"])
            for turn in range(length)
        ]
        for number, length in enumerate(lengths)
    ]


def make_teacher(lengths: List[int], training: bool, **settings) -> Teacher:
    """A teacher of generated episodes."""
    teacher = Teacher({"train": lambda: make_episodes(lengths)}, **settings)
    return teacher.for_split("train", training=training)


class Listener(Agent):
    """Answers one by one. Every copy keeps the ids of its conversation; what it answers
    depends on all it heard, so mixed histories show in the replies.

    conversations: The ids of each finished conversation, of all copies.
    heard: All ids in the order of their coming.
    """

    def __init__(self) -> None:
        self.conversations: List[List[str]] = []
        self.heard: List[str] = []
        self.turns: List[str] = []

    def observe(self, message: Message) -> Message:
        super().observe(message)
        self.heard.append(message["id"])
        self.turns = [*self.turns, message["id"]]
        return Message(message, turns=self.turns)

    def act(self) -> Message:
        assert self.observation is not None
        return self.reply(self.turns)

    @staticmethod
    def reply(turns: List[str]) -> Message:
        """Right at every third turn, counting from the first; else tells the history."""
        episode, turn = turns[-1].split("/")
        if (int(episode) + len(turns)) % 3 == 0:
            return Message(text=f"answer {episode} {turn}")
        return Message(text=" ".join(turns))

    def self_observe(self, message: Message) -> None:
        assert self.observation is not None
        is_over = self.observation["episode_done"]
        super().self_observe(message)
        if is_over:
            self.conversations.append(self.turns)
            self.turns = []

    def reset(self) -> None:
        super().reset()
        self.turns = []


class BatchListener(Listener):
    """Answers many at once; ``batches`` are the sizes of its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: List[int] = []
        self.original = self

    def batch_act(self, observations):
        assert self is self.original
        self.batches.append(len(observations))
        return [self.reply(observation["turns"]) for observation in observations]

    def act(self) -> Message:
        return self.batch_act([Message(self.observation, turns=self.turns)])[0]


class ColumnListener(BatchListener):
    """Observes single turns in columns, too."""

    def batch_observe(self, messages: MessageBatch) -> MessageBatch:
        assert isinstance(messages, MessageBatch)
        ids = column(messages, "id")
        self.heard.extend(ids)
        self.conversations.extend([name] for name in ids)
        columns: Dict = {**messages.columns, "turns": [[name] for name in ids]}
        return MessageBatch(columns, len(messages))


def expected_conversations(lengths: List[int]) -> List[List[str]]:
    """The ids of each conversation, in order."""
    return [[f"{number}/{turn}" for turn in range(n)] for number, n in enumerate(lengths)]
