"""LabelNoise: how many labels are wrong, which ones, and in which splits."""

from collections import Counter

import pytest

from tests.mutators.test_mutator import CLASSES, epoch, facts, teacher
from thincdialog.errors import ConfigError, DataError
from thincdialog.mutators.label_noise import LabelNoise
from thincdialog.teachers import IterableTeacher


def rows(n=2000, n_classes=3):
    return [(f"text {number}", CLASSES[number % n_classes]) for number in range(n)]


def labels(noise, given=None, split="train"):
    """Return the first label of each example by its id, for a split or for given data."""
    splits = {"train": given or rows(), "dev": rows(30, n_classes=2)}
    shown = IterableTeacher(splits, mutators=[noise]).for_split(split, training=True)
    found = {message["id"]: message["labels"] for message in shown.examples()}
    return {name: one[0] if len(one) == 1 else one for name, one in found.items()}


def test_label_noise_replaces_its_share_by_other_labels_of_the_data():
    right = {f"{number}/0": label for number, (_, label) in enumerate(rows())}
    wrong = {}
    for share in (0.0, 0.1, 0.5, 1.0):
        found = labels(LabelNoise(share))
        assert found.keys() == right.keys()
        changed = {name: label for name, label in found.items() if label != right[name]}
        assert abs(len(changed) - share * 2000) <= 4 * (2000 * share * (1 - share)) ** 0.5
        assert set(changed.values()) <= set(CLASSES)
        # A higher share adds wrong examples and does not change the others.
        assert wrong.items() <= changed.items()
        wrong = changed
    assert min(Counter(wrong.values()).values()) > 600
    half = labels(LabelNoise(0.5))
    assert half == labels(LabelNoise(0.5)) != labels(LabelNoise(0.5, seed=1))


def test_label_noise_is_of_training_by_default():
    right = [label for _, label in rows(30, n_classes=2)]
    assert list(labels(LabelNoise(1.0), split="dev").values()) == right
    # Each split uses its own labels: none of train's gets into dev.
    everywhere = LabelNoise(1.0, splits=None)
    assert set(labels(everywhere).values()) == set(CLASSES)
    dev = list(labels(everywhere, split="dev").values())
    assert all(now != was for now, was in zip(dev, right)) and set(dev) == {"red", "green"}


def test_label_noise_takes_given_labels_and_candidates():
    assert set(labels(LabelNoise(1.0, labels=["odd"])).values()) == {"odd"}
    given = [
        {"text": "a", "labels": ["x", "y"], "label_candidates": ["x", "y", "z"]},
        {"text": "b", "labels": ["p"]},
    ]
    assert list(labels(LabelNoise(1.0, labels=["q"]), given).values()) == ["z", "q"]


def test_label_noise_without_other_labels_is_an_error():
    with pytest.raises(DataError, match="example '0/0' cannot get a wrong label.*set 'labels'"):
        labels(LabelNoise(1.0), [("a", "x"), ("b", "x")])


@pytest.mark.parametrize("arguments", [{"share": 1.5}, {"share": -0.1}, {"share": 1, "labels": []}])
def test_label_noise_refuses_arguments_out_of_range(arguments):
    with pytest.raises(ConfigError, match="thincdialog.LabelNoise.v1"):
        LabelNoise(**arguments)


def test_label_noise_reads_a_stream_once_more_altogether():
    n_read = []

    def read():
        n_read.append(1)
        return iter(rows(20))

    shown = teacher([LabelNoise(0.5)], True, read=read, shuffle_window=8)
    assert facts(epoch(shown)) == facts(epoch(shown, 1))
    assert len(n_read) == 3
