"""Episodes with unreadable lines are left out, counted, and reported with their lines. The other
episodes are read as usual."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.test_formats import HEADERS, SUFFIXES
from thincdialog.errors import DataError
from thincdialog.formats.context import BadData, BadDataError, Bookmark
from thincdialog.formats.formats import FORMATS
from thincdialog.formats.json_layout import read_layout_file
from thincdialog.formats.layout_file import CorpusLayout

LATIN = "caf\u00e9".encode("latin-1")


def skipping(read, path, **choices):
    """Return the episodes that can be read, and the ``BadData`` of the others."""
    at = Bookmark()
    at.bad = BadData(path)
    return list(read(path, at=at, **choices)), at.bad


def texts(episodes):
    return [[message["text"] for message in episode] for episode in episodes]


def lines_of(bad):
    return [error.line for error in bad.first]


# For each format: good episodes as lines, and lines that cannot be read.
GOOD = {
    "parlai": ["text:A\tlabels:x\ntext:B\tlabels:y\tepisode_done:True"],
    "fbdialog": ["1 A\tx\n2 B\ty"],
    "jsonl": ['{"text": "A", "label": "x"}'],
    "csv": ["A,x", '"A\nB",x'],
    "tsv": ["A\tx"],
    "conversations": ['{"turns": [{"speaker": "a", "text": "A"}, {"speaker": "b", "text": "x"}]}'],
}
BAD = {
    "parlai": ["text:A\tlabels:x\nlabels:y\tepisode_done:True", "nothing\tepisode_done:1"],
    "fbdialog": ["1 A\tx\ny"],
    "jsonl": ["{", "3", '{"text": "A"}', '{"text": 3, "label": "x"}'],
    "csv": ["A,x,x", '"a"b,x', "A,"],
    "tsv": ["A", "A\t"],
    "conversations": ["{}", '{"turns": [3]}', "null"],
}


@pytest.mark.parametrize("name", GOOD)
@given(data=st.data())
def test_bad_data_does_not_change_other_episodes(name, tmp_path_factory, data):
    read = FORMATS[name]
    parts = data.draw(
        st.lists(
            st.tuples(st.booleans(), st.sampled_from(GOOD[name] + BAD[name])).map(lambda p: p[1]),
            max_size=12,
        )
    )
    head = HEADERS.get(name, [])
    path = tmp_path_factory.mktemp("bad") / f"a{SUFFIXES.get(name, '.txt')}"
    path.write_text("".join(f"{line}\n" for line in [*head, GOOD[name][0], *parts]))
    episodes, bad = skipping(read, str(path))
    n_bad = sum(part in BAD[name] for part in parts)
    assert (bad.n_skipped, bad.n_read) == (n_bad, 0)
    path.write_text(
        "".join(f"{line}\n" for line in [*head, GOOD[name][0], *parts] if line not in BAD[name])
    )
    assert texts(episodes) == texts(read(str(path)))


def test_bad_data_names_lines_and_counts_an_episode_once(written):
    path = written(
        "1 a\tx\n2 b\tx\tno reward\n3 c\tx\tnone\n1 d\tx\n2 e\tx\nno number\n1 f\tx\n", "a.txt"
    )
    episodes, bad = skipping(FORMATS["fbdialog"], path)
    assert texts(episodes) == [["f"]]
    assert (bad.n_skipped, bad.n_problems, lines_of(bad)) == (2, 3, [2, 3, 6])


@pytest.mark.parametrize("name", ["parlai", "fbdialog"])
def test_bad_data_a_line_that_is_not_utf8_removes_its_episode(name, written):
    lines = {
        "parlai": [b"text:a\tlabels:x", b"text:%s\tlabels:x\tepisode_done:True"],
        "fbdialog": [b"1 a\tx", b"2 %s\tx"],
    }[name]
    good, torn = (b"\n".join(lines) % word for word in (b"b", LATIN))
    episodes, bad = skipping(FORMATS[name], written(b"\n".join([torn, good, torn, good])))
    assert texts(episodes) == [["a", "b"]] * 2
    assert (bad.n_skipped, lines_of(bad)) == (2, [2, 6])


def test_bad_data_an_unclosed_quote_removes_one_row(written):
    rows = ["text,label", 'b,"x', *[f"t{n},x" for n in range(50)], '"two\nlines",x', 'last,"x']
    episodes, bad = skipping(FORMATS["csv"], written("\n".join(rows), "a.csv"))
    assert texts(episodes) == [*([f"t{n}"] for n in range(50)), ["two\nlines"]]
    assert bad.n_skipped == 2 and lines_of(bad)[-1] == 55
    assert f"see the quote at {bad.path}:2" in str(bad.first[0])


def test_bad_data_a_long_line_is_skipped(written, monkeypatch):
    monkeypatch.setattr("thincdialog.formats.text_file.MAX_LINE", 1000)
    rows = [{"text": text, "label": "x"} for text in ("a", "b" * 5000, "c")]
    episodes, bad = skipping(FORMATS["jsonl"], written(rows, "a.jsonl"))
    assert texts(episodes) == [["a"], ["c"]] and lines_of(bad) == [2]


def test_bad_data_of_layouts(written):
    layout = CorpusLayout(group="c", speaker="who", text="said", label_speaker="b")
    rows = [{"c": c, "who": who, "said": f"{c}{who}"} for c in "12345" for who in "ab"]
    del rows[3]["said"], rows[6]["c"]
    path = written(rows, "a.jsonl")
    episodes, bad = skipping(read_layout_file, path, layout=layout)
    # Conversation 2 lacks a text. The row without a group belongs to 3 or 4, so both are left out.
    assert texts(episodes) == [["1a"], ["5a"]] and lines_of(bad) == [4, 7]
    whole = [{"q": "1", "a": "x"}, {"q": 1, "a": "x"}, "no", {"q": "2", "a": "x"}]
    path = written(json.dumps(whole), "a.json")
    layout = CorpusLayout(text="q", label="a")
    episodes, bad = skipping(read_layout_file, path, layout=layout)
    assert texts(episodes) == [["1"], ["2"]] and bad.n_skipped == 2


def test_bad_data_lists_are_bounded():
    bad = BadData("a.csv", n_read=900, unit="examples")
    for line in range(100):
        bad.add(DataError("a.csv", "is wrong", line))
    assert bad.summary().splitlines() == [
        "a.csv  100 of 1,000 examples skipped (10.0 %):",
        *(f"  a.csv:{line}  is wrong" for line in range(5)),
        "  ... and 95 more",
    ]
    shown = str(BadDataError([bad])).splitlines()
    assert (shown[0], len(shown), shown[-1]) == ("a.csv  100 problems", 27, "  ... and 75 more")
