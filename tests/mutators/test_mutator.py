"""All mutators in teachers: counts, ids, epochs, streams, and configs."""

import itertools
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.config import load_config, resolve_config
from thincdialog.messages import Message
from thincdialog.mutators.context_shuffle import ContextShuffle
from thincdialog.mutators.episode_reverse import EpisodeReverse
from thincdialog.mutators.episode_shuffle import EpisodeShuffle
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.label_noise import LabelNoise
from thincdialog.mutators.last_turn import LastTurn
from thincdialog.mutators.limit import Limit
from thincdialog.mutators.without_openings import WithoutOpenings
from thincdialog.mutators.word_reverse import WordReverse
from thincdialog.mutators.word_shuffle import WordShuffle
from thincdialog.teachers import IterableTeacher

SIZES = [3, 1, 4, 2, 5]
CLASSES = ["red", "green", "blue"]


def data():
    return [
        [(f"{number}.{turn} one two", CLASSES[(number + turn) % 3]) for turn in range(size)]
        for number, size in enumerate(SIZES)
    ]


def teacher(mutators, streaming=False, split="train", training=True, read=data, **settings):
    splits = {"train": read, "dev": read}
    made = IterableTeacher(splits, mutators=mutators, streaming=streaming, **settings)
    return made.for_split(split, training=training)


def epoch(shown, number=0):
    """The examples of one epoch, as the teacher really hands them out."""
    shown.start_epoch(number, 0)
    found = []
    while not shown.epoch_done():
        found.append(shown.act())
        shown.observe(Message(text="reply"))
    return found


def facts(found):
    return sorted((m["id"], m["text"], tuple(m.all_labels)) for m in found)


MUTATORS = {
    "flatten": lambda: Flatten(2),
    "last_turn": LastTurn,
    "context_shuffle": ContextShuffle,
    "episode_reverse": EpisodeReverse,
    "episode_shuffle": EpisodeShuffle,
    "word_reverse": WordReverse,
    "word_shuffle": WordShuffle,
    "without_openings": WithoutOpenings,
    "limit": lambda: Limit(n_episodes=3),
    "cut": lambda: Limit(n_examples=6),
    "noise": lambda: LabelNoise(0.5),
}


def n_expected(names):
    """Turns of each episode behind the mutators."""
    sizes = list(SIZES)
    for name in names:
        if name in ("flatten", "last_turn"):
            sizes = [1] * sum(sizes)
        elif name == "limit":
            sizes = sizes[:3]
        elif name == "cut":
            ends = list(itertools.accumulate(sizes))
            sizes = [min(s, 6 - (e - s)) for s, e in zip(sizes, ends) if e - s < 6]
    return sizes


@given(st.lists(st.sampled_from(sorted(MUTATORS)), max_size=4))
@settings(max_examples=60)
def test_mutators_counts_ids_epochs_and_streams(names):
    sizes = n_expected(names)
    wanted = None
    for streaming in (False, True):
        shown = teacher([MUTATORS[name]() for name in names], streaming)
        if not streaming:
            assert shown.n_examples == sum(sizes) and shown.n_episodes == len(sizes)
        first, second = epoch(shown), epoch(shown, 1)
        wanted = wanted or facts(first)
        # What the second epoch shows does not lean on the first one.
        assert facts(first) == facts(second) == wanted
        assert len(first) == sum(sizes) == len({m["id"] for m in first})
    if "noise" not in names:
        evaluated = teacher([MUTATORS[name]() for name in names], training=False)
        assert facts(epoch(evaluated)) == wanted
    # Where nothing is left out and no text is written anew, all words are still there.
    if not {"limit", "cut"} & set(names):
        words = Counter(word for _, text, _ in wanted for word in text.split())
        assert words == Counter(w for part in data() for text, _ in part for w in text.split())


def test_mutators_in_a_config_stand_in_order():
    text = """
[tasks.t]
@teachers = "thincdialog.CoffeeOrder.v1"
n_train = 5

[tasks.t.mutators.*.limit]
@mutators = "thincdialog.Limit.v1"
{first}

[tasks.t.mutators.*.flatten]
@mutators = "thincdialog.Flatten.v1"

[tasks.t.mutators.*.limit_again]
@mutators = "thincdialog.Limit.v1"
n_episodes = 4

[agent]
@agents = "thincdialog.RepeatLabel.v1"
"""
    counts = []
    for first in ("n_episodes = 1", "n_episodes = 2"):
        config = resolve_config(load_config(text.format(first=first)))
        counts.append(config["tasks"]["t"].for_split("train").n_examples)
    assert counts[1] == 4 >= counts[0]
