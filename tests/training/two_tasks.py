"""Two tiny tasks, and a config that trains on both."""

from typing import List

from thinc.api import Model

from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import IterableTeacher, registry
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.messages import column

# Ids of the batches that recorders were trained on since the test cleared this list.
SEEN: List[List[str]] = []


@registry.teachers("tests.tiny.v1")
def tiny(
    words: str,
    turns: List[int],
    streaming: bool = False,
    endless: bool = False,
    splits: str = "train dev test",
    mutators=None,
):
    """Make questions of any length that end with a word, which is the answer.

    turns (List[int]): The number of turns of each episode.
    """
    known = words.split()

    def example(name, number):
        word = known[number % len(known)]
        return {"id": name, "text": "say " * (number % 5) + word, "labels": [word]}

    def make(split):
        for number, n_turns in enumerate(turns):
            names = [f"{split}{number}/{turn}" for turn in range(n_turns)]
            yield [example(name, number + turn) for turn, name in enumerate(names)]

    sources = {split: (lambda split=split: make(split)) for split in splits.split()}
    return IterableTeacher(
        sources, streaming=streaming, endless=endless, task=known[0], mutators=mutators
    )


class Recorder(RankerAgent):
    """A ranker that records the ids of the examples that it was trained on."""

    def learn(self, observations):
        SEEN.append(list(column(observations, "id")))
        super().learn(observations)


@registry.agents("tests.recorder.v1")
def make_recorder(model: Model) -> Recorder:
    return Recorder(model, loss=RankingSoftmax())


TWO_TASKS = """
[system]
seed = 3

[tasks.colours]
@teachers = "tests.tiny.v1"
words = "red green blue amber pink"
turns = [1, 3, 2, 1, 1, 4, 2, 1]

[tasks.drinks]
@teachers = "tests.tiny.v1"
words = "tea milk juice cocoa"
turns = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "tests.recorder.v1"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 8
dropout = 0.1

[evaluation]
n_candidates = 4

[training]
max_epochs = 2.0
score = "macro/hits@1"
n_samples = 3

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.02
"""
SIZES = {"colours": 15, "drinks": 22}
N_EXAMPLES = sum(SIZES.values())


def ids(split, names=tuple(SIZES)):
    """Return the sorted ids of both tasks together."""
    turns = {"colours": [1, 3, 2, 1, 1, 4, 2, 1], "drinks": [1] * 22}
    return sorted(
        f"{name}/{split}{number}/{turn}"
        for name in names
        for number, n_turns in enumerate(turns[name])
        for turn in range(n_turns)
    )
