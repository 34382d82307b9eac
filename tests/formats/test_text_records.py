"""Records that a layout cuts out of text files. test_json_layout.py tests each layout."""

import pytest

from tests.formats.test_json_layout import TEXTS
from thincdialog.errors import DataError
from thincdialog.formats.context import Bookmark
from thincdialog.formats.json_layout import read_layout_file
from thincdialog.formats.layout_file import CorpusLayout, find_layout
from thincdialog.formats.text_records import read_text_records


@pytest.mark.parametrize("name", ["speaker-lines", "whatsapp", "conll", "tabs", "iob"])
def test_layouts_of_text_resume_at_a_mark(written, name):
    suffix, text, _ = TEXTS[name]
    path, layout = written(text, f"a{suffix}"), find_layout(name)
    whole = list(read_layout_file(path, layout))
    at = Bookmark()
    for number, episode in enumerate(read_layout_file(path, layout, at=at)):
        rest = list(read_layout_file(path, layout, at=Bookmark(at.mark())))
        assert episode in rest and rest == whole[len(whole) - len(rest) :], number


def test_layouts_of_text_say_which_line_does_not_fit(written):
    layout = find_layout("fasttext")
    path = written("__label__a b\nno label\n\n__label__c d\n")
    with pytest.raises(DataError, match=":2  does not match the layout's 'pattern': 'no label'"):
        list(read_layout_file(path, layout))
    at = Bookmark()
    at.bad = at.counts
    assert len(list(read_layout_file(path, layout, at=at))) == 2 and at.bad.n_skipped == 1


def test_layouts_of_text_leave_out_conversations_with_a_line_that_cannot_be_read(written):
    path = written(b"A: a\nB: b\n\nA: c\nB: \xff\nA: d\n\nA: e\nB: f\nA: g\n")
    at = Bookmark()
    at.bad = at.counts
    found = list(read_layout_file(path, find_layout("speaker-lines"), label_speaker="B", at=at))
    assert [episode[0]["labels"] for episode in found] == [["b"], ["f"]]


def test_text_records_have_the_number_of_their_first_line(written):
    path = written("x a\n\n b\nx c\n\n\nx d\n")
    layout = CorpusLayout(pattern="x (?P<text>.*)", group="$file")
    found = list(read_text_records(path, layout, Bookmark()))
    expected = [(1, "a\n\n b", "1"), (4, "c", "3"), (7, "d", "7")]
    assert found == [(n, {"text": text}, key) for n, text, key in expected]
    layout = CorpusLayout(blocks=True)
    found = read_text_records(path, layout, Bookmark())
    assert [(n, len(value["rows"])) for n, value, _ in found] == [(1, 1), (3, 2), (7, 1)]


def test_text_records_of_blocks_with_a_line_that_cannot_be_read_are_left_out(written):
    path = written(b"# intent: a\nb O\n\n# intent: c\nd O\n\xff\ne O\n\n# intent: f\ng O\n")
    at = Bookmark()
    at.bad = at.counts
    found = list(read_layout_file(path, find_layout("conll"), at=at))
    assert [m["text"] for (m,) in found] == ["b", "g"] and at.bad.n_skipped == 1
