"""Conversations in JSONL, in both forms and for every choice of the label speaker."""

import pytest

from thincdialog.formats.context import Bookmark, tolerating
from thincdialog.formats.conversations import read_conversations
from thincdialog.messages import SILENCE
from thincdialog.teachers.text_formats import Conversations


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


FIRST = [(SILENCE, "a1\na2"), ("b1", "a3"), ("b2", "a4")]
SECOND = [("a1\na2", "b1"), ("a3", "b2")]


@pytest.mark.parametrize(
    "label_speaker, expected",
    [
        ("second", [SECOND]), ("first", [FIRST]), ("bob", [SECOND]), ("ann", [FIRST]),
        ("both", [FIRST, SECOND]),
    ],
)  # fmt: skip
def test_conversations_label_sides(written, label_speaker, expected):
    assert pairs(written([TALK]), label_speaker) == expected


def test_conversations_named_speaker_answers_all_others(written):
    said = ("user", "u1"), ("kb", "k1"), ("system", "s1"), ("user", "u2"), ("system", "s2")
    path = written([turns(*said), turns(("user", "nobody answers"), ("kb", "k1"))])
    assert pairs(path, "system") == [[("u1\nk1", "s1"), ("u2", "s2")]]


def test_conversations_reads_the_form_of_parlai(written):
    said = [
        [{"id": "context", "text": "ignored"}, {"id": "A", "text": "a1", "labels": ["no"]}],
        [{"id": "B", "text": "b1"}, {"id": "A", "text": "a2"}],
    ]
    path = written([{"dialog": said, "context": ["more"], "metadata_path": "x"}])
    assert pairs(path, "second") == [[("a1", "b1")]]
    assert [m["id"] for e in read_conversations(path, "both") for m in e] == [
        "1#first/0", "1#first/1", "1#second/0",
    ]  # fmt: skip


def test_conversations_ids_and_single_turns(written):
    path = written(["", turns(("a", "alone")), TALK, turns(("a", "x"), ("b", "y"), id=7)])
    ids = [message["id"] for episode in read_conversations(path) for message in episode]
    assert ids == ["t/0", "t/1", "7/0"]
    # A single turn has no answer, but it is itself an answer to silence.
    assert pairs(path, "first")[0] == [(SILENCE, "alone")]


def test_conversations_counts_each_text_once_for_a_vocabulary(written):
    path = written([TALK])
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
def test_conversations_names_the_line_of_a_mistake(error, line, message):
    text = error(read_conversations, [TALK, line])
    assert text.startswith(":2  ") and message in text


@pytest.mark.parametrize(
    "conversation, speaker, message",
    [
        (turns(("user", "a"), ("system", "b")), "sytem", "file; did you mean 'system'?"),
        ("", "second", "all lines are blank"),
        (turns(("a", "x")), "second", "and an answer"),
    ],
)
def test_conversations_without_examples_says_why(error, conversation, speaker, message):
    assert message in error(lambda path: read_conversations(path, speaker), [conversation])


def test_conversations_without_the_label_speaker_are_counted(written):
    other = turns(("ann", "x"), ("cid", "y"))
    at = Bookmark()
    assert len(list(read_conversations(written([other, TALK, other, ""]), "bob", at))) == 1
    assert (at.counts.n_read, at.counts.n_without) == (3, 2)
    assert at.counts.summary().endswith(
        "  2 of 3 conversations left out: the label_speaker does not reply in them"
    )


def test_conversations_without_the_label_speaker_are_read_if_labels_are_not_needed(written):
    at = Bookmark()
    with tolerating(unlabelled=True):
        assert len(list(read_conversations(written([TALK]), "nobody", at))) == 1
    assert at.counts.n_without == 0


def test_conversations_without_turns_are_left_out_if_labels_are_not_needed(written):
    with tolerating(unlabelled=True):
        assert len(list(read_conversations(written([turns(), TALK]), "bob"))) == 1


def test_conversations_speakers_may_be_whole_numbers(written):
    path = written([turns((1, "a1"), (2, "b1"), (1, "a2"), (2, "b2"))])
    assert pairs(path, "2") == pairs(path, "second") == [[("a1", "b1"), ("a2", "b2")]]
    path = written([{"dialog": [[{"id": 1, "text": "a1"}, {"id": 2, "text": "b1"}]]}])
    assert pairs(path, "2") == [[("a1", "b1")]]
