"""Conversations in JSONL, in both forms and for every label side."""

import json

import pytest

from thincdialog.errors import DataError
from thincdialog.formats.conversations import read_conversations
from thincdialog.messages import SILENCE
from thincdialog.teachers.conversations import Conversations


def written(tmp_path, *conversations, name="data.jsonl"):
    path = tmp_path / name
    lines = [value if isinstance(value, str) else json.dumps(value) for value in conversations]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def turns(*said, **fields):
    return {**fields, "turns": [{"speaker": who, "text": text} for who, text in said]}


def pairs(path, label_speaker):
    return [
        [(message["text"], *message["labels"]) for message in episode]
        for episode in read_conversations(path, label_speaker)
    ]


TALK = turns(
    ("ann", "a1"), ("ann", "a2"), ("bob", "b1"), ("ann", "a3"), ("bob", "b2"), ("ann", "a4"), id="t"
)


@pytest.mark.parametrize(
    "label_speaker, expected",
    [
        ("second", [[("a1\na2", "b1"), ("a3", "b2")]]),
        ("first", [[(SILENCE, "a1\na2"), ("b1", "a3"), ("b2", "a4")]]),
        ("bob", [[("a1\na2", "b1"), ("a3", "b2")]]),
        ("ann", [[(SILENCE, "a1\na2"), ("b1", "a3"), ("b2", "a4")]]),
        (
            "both",
            [
                [(SILENCE, "a1\na2"), ("b1", "a3"), ("b2", "a4")],
                [("a1\na2", "b1"), ("a3", "b2")],
            ],
        ),
    ],
)
def test_conversations_label_sides(tmp_path, label_speaker, expected):
    assert pairs(written(tmp_path, TALK), label_speaker) == expected


def test_conversations_named_speaker_answers_all_others(tmp_path):
    path = written(
        tmp_path,
        turns(("user", "u1"), ("kb", "k1"), ("system", "s1"), ("user", "u2"), ("system", "s2")),
        turns(("user", "nobody answers"), ("kb", "k1")),
    )
    assert pairs(path, "system") == [[("u1\nk1", "s1"), ("u2", "s2")]]


def test_conversations_reads_what_parlai_writes(tmp_path):
    said = [
        [{"id": "context", "text": "ignored"}, {"id": "A", "text": "a1", "labels": ["no"]}],
        [{"id": "B", "text": "b1"}, {"id": "A", "text": "a2"}],
    ]
    path = written(tmp_path, {"dialog": said, "context": ["more"], "metadata_path": "x"})
    assert pairs(path, "second") == [[("a1", "b1")]]
    assert [m["id"] for e in read_conversations(path, "both") for m in e] == [
        "1#first/0", "1#first/1", "1#second/0",
    ]  # fmt: skip


def test_conversations_ids_and_single_turns(tmp_path):
    path = written(tmp_path, "", turns(("a", "alone")), TALK, turns(("a", "x"), ("b", "y"), id=7))
    ids = [message["id"] for episode in read_conversations(path) for message in episode]
    assert ids == ["t/0", "t/1", "7/0"]
    # A single turn has no answer, but its speaker answers silence.
    assert pairs(path, "first")[0] == [(SILENCE, "alone")]


def test_conversations_counts_each_text_once_for_a_vocabulary(tmp_path):
    path = written(tmp_path, TALK)
    texts = {
        side: sorted(Conversations(train=path, label_speaker=side).for_split("train").texts())
        for side in ("second", "both")
    }
    assert texts["second"] == ["a1\na2", "a3", "b1", "b2"]
    assert texts["both"] == ["a1\na2", "a3", "a4", "b1", "b2"]


@pytest.mark.parametrize(
    "line, message",
    [
        ({"turn": []}, "has neither 'turns' nor 'dialog'; did you mean 'turn'?"),
        ({"turns": {}}, "'turns' must be a list, found an object"),
        ({"dialog": [{"id": "a"}]}, "'dialog' must be a list of lists"),
        ({"turns": ["hi"]}, "turn 1 must be an object, found a string"),
        ({"turns": [{"speaker": "a"}]}, "'text' of turn 1 is missing"),
        ({"turns": [{"text": "a"}]}, "'speaker' of turn 1 is missing"),
        ({"turns": [{"speaker": "a", "text": 3}]}, "'text' of turn 1 is a number, not a string"),
        ({"dialog": [[{"id": None, "text": "a"}]]}, "'id' of turn 1 is null, not a string"),
    ],
)
def test_conversations_names_the_line_of_a_mistake(tmp_path, line, message):
    path = written(tmp_path, TALK, line)
    with pytest.raises(DataError) as error:
        list(read_conversations(path))
    assert str(error.value).startswith(f"{path}:2  ") and message in str(error.value)


def test_conversations_with_an_unknown_speaker_names_those_there_are(tmp_path):
    path = written(tmp_path, turns(("user", "a"), ("system", "b")))
    with pytest.raises(DataError, match="label_speaker 'sytem'; did you mean 'system'?"):
        list(read_conversations(path, "sytem"))


@pytest.mark.parametrize(
    "conversation, message", [("", "all lines are blank"), (turns(("a", "x")), "and an answer")]
)
def test_conversations_without_examples_says_why(tmp_path, conversation, message):
    with pytest.raises(DataError, match=message):
        list(read_conversations(written(tmp_path, conversation)))
