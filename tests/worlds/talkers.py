"""Agents and data for the tests of worlds. The agents record all messages that they observe."""

from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from thincdialog.batchers import Batcher, Batchsort, Fixed, Lengths, Padded, Sizes, Words
from thincdialog.examples import Batch
from thincdialog.messages import Message
from thincdialog.metrics.accuracy import Accuracy
from thincdialog.metrics.f1 import F1
from thincdialog.metrics.ranking import Ranking
from thincdialog.protocol import Agent
from thincdialog.teachers import Teacher, mix_tasks


def make_episodes(lengths: List[int]) -> List[List[Message]]:
    """Return episodes with these numbers of turns. Each text, label and id contains the numbers of
    the episode and of the turn."""
    return [
        [
            Message(text=f"say {number} {turn}", labels=[f"answer {number} {turn}"])
            for turn in range(length)
        ]
        for number, length in enumerate(lengths)
    ]


def make_teacher(lengths: List[int], training: bool, **settings) -> Teacher:
    """Return a teacher of generated episodes."""
    teacher = Teacher({"train": lambda: make_episodes(lengths)}, **settings)
    return teacher.for_split("train", training=training)


def make_tasks(
    tasks: List[List[int]],
    training: bool,
    weights: Optional[List[int]] = None,
    unit: str = "examples",
    repeat: bool = False,
    **settings,
) -> Teacher:
    """Return a mixture of the tasks "a", "b", ... of generated episodes. A single task is returned
    unmixed."""
    teachers = {
        name: make_teacher(lengths, training, **settings) for name, lengths in zip("abcdef", tasks)
    }
    named = None if weights is None else dict(zip(teachers, weights))
    return mix_tasks(teachers, weights=named, unit=unit, repeat=repeat)


def make_wordy(words: List[List[Tuple[int, int]]], training: bool, **settings) -> Teacher:
    """Return a teacher of episodes. A turn is a pair: the numbers of words in its text and in its
    label."""

    def episodes() -> List[List[Message]]:
        return [
            [Message(text="a " * n_text, labels=["b " * n_label]) for n_text, n_label in turns]
            for turns in words
        ]

    return Teacher({"train": episodes}, **settings).for_split("train", training=training)


class Opposites(Batcher):
    """A custom batcher that pairs the longest row with the shortest."""

    def plan(self, lengths, limit, rng):
        order = lengths.totals.argsort(kind="stable")
        half = len(order) // 2
        pairs = [order[[place, -1 - place]] for place in range(half)]
        return pairs + ([order[half : half + 1]] if len(order) % 2 else [])


def make_batcher(kind: str, size: int, buffer: int) -> Batcher:
    """Return a batcher of any kind, whose batches have about `size` rows of the tests' data."""
    if kind == "fixed":
        return Fixed(size)
    if kind == "batchsort":
        return Batchsort(size, buffer)
    if kind == "words":
        return Words(size * 6, buffer=buffer)
    if kind == "padded":
        return Padded(size * 6, buffer=buffer)
    return Opposites(Sizes(2), buffer=buffer)


BATCHERS = ("fixed", "batchsort", "words", "padded", "user's")


class Listener(Agent):
    """Answers one by one. Each copy keeps the ids of its conversation. Its replies depend on all
    messages that it observed, so that mixed histories show in the replies.

    conversations: The ids of each finished conversation, of all copies.
    heard: All ids in the order in which they were observed.
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
        """Return the label at every third turn, and the history at other turns."""
        *_, episode, turn = turns[-1].split("/")
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

    def conversation_state(self):
        return self.turns if self.observation is None else self.turns[:-1]

    def set_conversation_state(self, value):
        self.reset()
        self.turns = value


class BatchListener(Listener):
    """Answers many at once; ``batches`` are the sizes of its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: List[int] = []
        self.original = self

    def batch_act(self, observations):
        assert self is self.original
        self.batches.append(len(observations))
        if isinstance(observations, Batch):  # A whole batch is not observed.
            ids = observations.ids()
            self.heard.extend(ids)
            self.conversations.extend([name] for name in ids)
            observations = [Message(row, turns=[row["id"]]) for row in observations]
        return [self.reply(observation["turns"]) for observation in observations]

    def act(self) -> Message:
        return self.batch_act([Message(self.observation, turns=self.turns)])[0]


class TruncatingListener(BatchListener):
    """Returns the length of its history, and reads up to `max_tokens` of it.

    rows: For each batch, the (context, label) words of each row that were read.
    n_measured: How often each id was measured.
    """

    can_truncate = True

    def __init__(self) -> None:
        super().__init__()
        self.rows: List[np.ndarray] = []
        self.n_measured: Dict[str, int] = {}
        self.said: Tuple[str, ...] = ()

    def observe(self, message: Message) -> Message:
        observation = super().observe(message)
        self.said = (*self.said, message["text"])
        return Message(observation, said=self.said)

    def self_observe(self, message: Message) -> None:
        super().self_observe(message)
        if not self.turns:
            self.said = ()

    def counts(self, observations: Sequence[Message]) -> np.ndarray:
        counts = [
            (
                sum(len(text.split()) for text in observation.get("said", [observation["text"]])),
                len(observation.all_labels[0].split()),
            )
            for observation in observations
        ]
        return np.array(counts, dtype=np.int64).reshape(-1, 2)

    def batch_lengths(self, observations: Sequence[Message]) -> Lengths:
        assert self is self.original
        for observation in observations:
            name = observation["id"]
            self.n_measured[name] = self.n_measured.get(name, 0) + 1
        return Lengths(self.counts(observations), (True, True))

    def batch_act(self, observations):
        counts = self.counts(observations)
        for row, observation in zip(counts, observations):
            if "max_tokens" in observation:
                row[:] = np.minimum(row, observation["max_tokens"])
        self.rows.append(counts)
        return super().batch_act(observations)

    def reset(self) -> None:
        super().reset()
        self.said = ()

    def conversation_state(self):
        turns = super().conversation_state()
        return [turns, self.said[: len(turns)]]

    def set_conversation_state(self, value):
        super().set_conversation_state(value[0])
        self.said = tuple(value[1])


class WholeListener(BatchListener):
    """Takes whole batches of single turns."""

    takes_batches = True


class WholeTruncatingListener(TruncatingListener):
    """Takes whole batches of single turns, and can truncate."""

    takes_batches = True


def scored(teacher: Teacher) -> Teacher:
    teacher.set_metrics([Accuracy(), F1(), Ranking()])
    return teacher


def run_epoch(world, epoch: int = 0, seed: int = 0) -> int:
    """Run an epoch and return the number of its parleys."""
    world.start_epoch(epoch, seed)
    n_parleys = 0
    while not world.epoch_done():
        world.parley()
        n_parleys += 1
    return n_parleys


def expected_conversations(lengths: List[int], task: str = "") -> List[List[str]]:
    """Return the ids of each conversation, in order."""
    return [[f"{task}{number}/{turn}" for turn in range(n)] for number, n in enumerate(lengths)]


def expected_of_tasks(tasks: List[List[int]]) -> List[List[str]]:
    """Return the ids of each conversation of ``make_tasks``."""
    if len(tasks) == 1:
        return expected_conversations(tasks[0])
    named = zip("abcdef", tasks)
    return [
        turns for name, lengths in named for turns in expected_conversations(lengths, f"{name}/")
    ]
