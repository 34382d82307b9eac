"""Limit and LabelNoise, and all mutators in teachers: counts, epochs, streams."""

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.config import load_config, resolve_config
from thincdialog.errors import ConfigError, DataError
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


def data(sizes=SIZES, n_classes=3):
    return [
        [(f"{number}.{turn} one two", CLASSES[(number + turn) % n_classes]) for turn in range(size)]
        for number, size in enumerate(sizes)
    ]


def teacher(mutators, streaming=False, split="train", training=True, **settings):
    made = IterableTeacher(
        {"train": data, "dev": data}, mutators=mutators, streaming=streaming, **settings
    )
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
        # What the second epoch shows does not lean on the first one.
        assert facts(first) == facts(second)
        assert len(first) == sum(sizes) == len({m["id"] for m in first})
        wanted = wanted or facts(first)
        assert facts(first) == wanted
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


@pytest.mark.parametrize("streaming", [False, True])
def test_limit_reads_no_further(streaming):
    read = []

    def numbers():
        for number in itertools.count():
            read.append(number)
            yield (f"text {number}", "label")

    shown = IterableTeacher(
        {"train": numbers}, mutators=[Flatten(), Limit(n_episodes=7)], streaming=streaming
    ).for_split("train", training=True)
    assert len(epoch(shown)) == 7
    assert max(read) == 6


def test_limit_cuts_the_last_episode_and_only_its_splits():
    for limit in (Limit(n_examples=5), Limit(n_episodes=2, n_examples=5), Limit(4, 5)):
        sizes = Counter(m["id"][0] for m in epoch(teacher([limit], training=False)))
        expected = {"0": 3, "1": 1} if limit.n_episodes == 2 else {"0": 3, "1": 1, "2": 1}
        assert sizes == expected
    only = Limit(n_episodes=1, splits=["train"])
    assert teacher([only]).n_examples == 3
    assert teacher([only], split="dev").n_examples == sum(SIZES)


@pytest.mark.parametrize("numbers", [(0, 0), (-1, 3), (3, -1)])
def test_limit_refuses_numbers_that_keep_nothing(numbers):
    with pytest.raises(ConfigError, match="give 1 or more for one of them"):
        Limit(*numbers)


def big(n=2000, n_classes=3):
    return [(f"text {number}", CLASSES[number % n_classes]) for number in range(n)]


def noisy(share, **settings):
    shown = IterableTeacher(
        {"train": big(), "dev": big()}, mutators=[LabelNoise(share, **settings)]
    )
    return {m["id"]: m["labels"] for m in shown.for_split("train", training=True).examples()}


def test_label_noise_replaces_its_share_by_other_labels_of_the_data():
    right = {f"{number}/0": [label] for number, (_, label) in enumerate(big())}
    wrong = {}
    for share in (0.0, 0.1, 0.5, 1.0):
        found = noisy(share)
        assert found.keys() == right.keys()
        changed = {name: labels for name, labels in found.items() if labels != right[name]}
        assert abs(len(changed) - share * 2000) <= 4 * (2000 * share * (1 - share)) ** 0.5
        assert all(len(labels) == 1 and labels[0] in CLASSES for labels in changed.values())
        # A higher share adds to the wrong examples, and leaves them as they are.
        assert wrong.items() <= changed.items()
        wrong = changed
    counted = Counter(labels[0] for labels in wrong.values())
    assert min(counted.values()) > 600
    assert noisy(0.5) == noisy(0.5) != noisy(0.5, seed=1)


def test_label_noise_is_of_training_by_default():
    mutator = LabelNoise(1.0)
    shown = IterableTeacher({"train": big(30), "dev": big(30, n_classes=2)}, mutators=[mutator])
    dev = [m["eval_labels"][0] for m in shown.for_split("dev").examples()]
    assert dev == [label for _, label in big(30, n_classes=2)]
    everywhere = IterableTeacher(
        {"train": big(30), "dev": big(30, n_classes=2)}, mutators=[LabelNoise(1.0, splits=None)]
    )
    # Each split has its own labels: none of train's gets into dev.
    train = [m["labels"][0] for m in everywhere.for_split("train", training=True).examples()]
    assert set(train) == set(CLASSES)
    dev = [m["eval_labels"][0] for m in everywhere.for_split("dev").examples()]
    assert all(now != was for now, (_, was) in zip(dev, big(30, n_classes=2)))
    assert set(dev) == {"red", "green"}


def test_label_noise_takes_given_labels_and_candidates():
    assert set(map(tuple, noisy(1.0, labels=["odd"]).values())) == {("odd",)}
    rows = [
        {"text": "a", "labels": ["x", "y"], "label_candidates": ["x", "y", "z"]},
        {"text": "b", "labels": ["p"]},
    ]
    shown = IterableTeacher({"train": rows}, mutators=[LabelNoise(1.0, labels=["q"])])
    found = [m["labels"] for m in shown.for_split("train", training=True).examples()]
    assert found == [["z"], ["q"]]


def test_label_noise_with_nothing_to_put_says_so():
    shown = IterableTeacher({"train": [("a", "x"), ("b", "x")]}, mutators=[LabelNoise(1.0)])
    with pytest.raises(DataError, match="example '0/0' can get no wrong label.*some 'labels'"):
        shown.for_split("train", training=True).act()


@pytest.mark.parametrize("arguments", [{"share": 1.5}, {"share": -0.1}, {"share": 1, "labels": []}])
def test_label_noise_refuses_arguments_out_of_range(arguments):
    with pytest.raises(ConfigError, match="thincdialog.LabelNoise.v1"):
        LabelNoise(**arguments)


def test_label_noise_reads_a_stream_once_more_altogether():
    n_read = []

    def rows():
        n_read.append(1)
        return iter(big(20))

    shown = IterableTeacher(
        {"train": rows}, mutators=[LabelNoise(0.5)], streaming=True, shuffle_window=8
    ).for_split("train", training=True)
    assert facts(epoch(shown)) == facts(epoch(shown, 1))
    assert len(n_read) == 3
