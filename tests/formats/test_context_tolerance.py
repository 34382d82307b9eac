"""Data errors that are tolerated within a ``with`` block, and in blocks around it."""

import pytest

from tests.formats.test_formats import CONTENTS, SUFFIXES
from thincdialog.errors import DataError
from thincdialog.formats.context import Tolerance, tolerance, tolerating
from thincdialog.formats.formats import FORMATS
from thincdialog.formats.json_layout import read_layout_file
from thincdialog.formats.layout_file import CorpusLayout

TURNS = '{"turns": [{"speaker": "a", "text": "hi"}, {"speaker": "a", "text": "you"}]}'


@pytest.mark.parametrize(
    "name, text, choices, found",
    [
        ("jsonl", '{"text": "hi"}\n{"text": "ho", "label": null}', {}, [["hi"], ["ho"]]),
        ("csv", "text\nhi\n", {}, [["hi"]]),
        ("csv", "text,label\nhi,\n", {}, [["hi"]]),
        ("conversations", TURNS, {}, [["hi\nyou"]]),
        ("conversations", TURNS, {"label_speaker": "b"}, [["hi\nyou"]]),
        ("parlai", "text:hi\ntext:ho\tepisode_done:True\n", {}, [["hi", "ho"]]),
        ("fbdialog", "1 It is so\n2 Is it?\t\n", {}, [["It is so\nIs it?"]]),
    ],
)
def test_unlabelled_examples_are_read_if_tolerated(name, text, choices, found, written):
    read = FORMATS[name]
    path = written(text, f"a{SUFFIXES.get(name, '.txt')}")
    with pytest.raises(DataError):
        list(read(path, **choices))
    with tolerating(unlabelled=True):
        episodes = list(read(path, **choices))
    assert [[message["text"] for message in episode] for episode in episodes] == found
    assert not any("labels" in message for episode in episodes for message in episode)


@pytest.mark.parametrize("name", FORMATS)
def test_unlabelled_reading_does_not_change_labels(name, written):
    read = FORMATS[name]
    path = written(CONTENTS[name], f"a{SUFFIXES.get(name, '.txt')}")
    with tolerating(unlabelled=True):
        found = list(read(path))
    assert found == list(read(path)) and found[0][0]["labels"] == ["b"]


def test_unlabelled_layouts(written):
    path, layout = written([{"q": "hi"}], "a.jsonl"), CorpusLayout(text="q", label="a")
    with tolerating(unlabelled=True):
        assert list(read_layout_file(path, layout)) == [[{"id": "0/0", "text": "hi"}]]


def test_tolerance_grows_in_nested_blocks_and_ends_with_them():
    found = {}
    with tolerating(outside_labels=True):
        with tolerating(unlabelled=True, bad_data=found):
            assert (
                tolerance() == Tolerance(True, True, False, found, None, False)
                and tolerance().bad_data is found
            )
        with tolerating(outside_labels=False):
            assert tolerance() == Tolerance(False, True, False, None, None, False)
    assert tolerance() == Tolerance(False, False, False, None, None, False)


def test_tolerance_of_empty_labels_in_a_layout(written):
    path, layout = written([{"q": "hi", "a": []}], "a.jsonl"), CorpusLayout(text="q", label="a")
    with pytest.raises(DataError, match="a is an empty list: .*MultiLabel.v1 needs none"):
        list(read_layout_file(path, layout))
    with tolerating(empty_labels=True):
        assert list(read_layout_file(path, layout))[0][0]["labels"] == []
    with tolerating(empty_labels=True), pytest.raises(DataError, match="has no 'a'"):
        list(read_layout_file(written([{"q": "hi"}], "b.jsonl"), layout))
