"""Episodes that are Python objects."""

import numpy as np
import pytest

from thincdialog.errors import DataError
from thincdialog.messages import Message
from thincdialog.teachers import IterableTeacher


def messages(data, **choices):
    return list(IterableTeacher({"train": data}, **choices).for_split("train").examples())


def test_iterable_takes_pairs_mappings_and_single_examples():
    data = [
        [("a", "x"), {"text": "b", "labels": ["y", "z"], "mood": 3}],
        ("c", "x"),
        {"text": "d", "eval_labels": "w", "episode_done": True, "id": "mine"},
        ["e", "v"],
    ]
    assert [(m["id"], m["text"], m["eval_labels"]) for m in messages(data)] == [
        ("0/0", "a", ["x"]), ("0/1", "b", ["y", "z"]), ("1/0", "c", ["x"]),
        ("mine", "d", ["w"]), ("3/0", "e", ["v"]),
    ]  # fmt: skip


def test_iterable_does_not_change_the_given_messages():
    mine = Message(text="a", labels="x", label_candidates=("x", "y"))
    before = dict(mine)
    assert messages([[mine]], candidates=["x", "q"])[0]["label_candidates"] == ["x", "q"]
    assert mine == before


def test_iterable_features_need_no_text():
    row = np.ones(3, dtype="f")
    (message,) = messages([[{"features": row, "labels": "x"}]])
    assert message["text"] == "" and message["features"] is row


@pytest.mark.parametrize(
    "data, message",
    [
        (["hello"], "episode 0 is 'hello': expected a list of messages"),
        ([3], "episode 0 is '3': expected a list"),
        ([[("a", "x")], [("b",)]], "a message of episode 1 is .*a pair"),
        ([[{"labels": "x"}]], "a message of episode 0 lacks 'text'"),
        ([[{"text": 3}]], "a message of episode 0 has a number as 'text'"),
        ([[{"text": "a", "labels": [1]}]], "'labels' of a message of episode 0 must be strings"),
        ([[{"text": "a", "labels": 7}]], "'labels' of a message of episode 0 must be strings"),
        ([[{"text": "a", "labels": "x", "label_candidates": "y"}]], "the label 'x' is not among"),
        ([], "the split 'train' has no examples"),
        ([[]], "the split 'train' has no examples"),
    ],
)
def test_iterable_mistakes_are_named(data, message):
    with pytest.raises(DataError, match=f"^mine/train.*{message}"):
        messages(data, task="mine")


def test_iterable_takes_none_for_missing_labels_and_candidates():
    no_labels = {"text": "a", "labels": None, "label_candidates": ["x"]}
    shown = messages([no_labels, {"text": "b", "labels": "y", "label_candidates": None}])
    assert [message.get("eval_labels") for message in shown] == [None, ["y"]]


@pytest.mark.parametrize("choice", ["streaming", "endless"])
def test_iterable_refuses_to_stream_a_generator(choice):
    data = ((f"q{n}", "a") for n in range(3))
    with pytest.raises(DataError, match="^mine/train.*a generator.*pass a function that returns"):
        IterableTeacher({"train": data}, task="mine", **{choice: True})
