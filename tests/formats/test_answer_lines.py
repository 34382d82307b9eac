"""Answers are written as lines that the project's own readers can read."""

import json

from hypothesis import given
from hypothesis import strategies as st

from thincdialog.formats.answer_lines import answer_lines
from thincdialog.formats.context import Bookmark
from thincdialog.formats.tables import read_table

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufeff"))


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1), st.sampled_from(",;\t|"))
def test_answer_lines_of_csv_are_read_back(tmp_path_factory, rows, delimiter):
    rows = [dict(zip(("text", "reply"), cells)) for cells in rows]
    path = tmp_path_factory.mktemp("lines") / "a.csv"
    text = "".join(f"{line}\n" for line in answer_lines(rows, "csv", [*rows[0]], delimiter))
    path.write_text(text, encoding="utf8", newline="")
    read = read_table(path, Bookmark(), delimiter=delimiter)
    assert [row for _, row in read] == rows


def test_answer_lines_of_tsv_escape_tabs_and_line_ends():
    row = {"a": "x", "b": "y\tz\nw", "c": None, "d": 0.5}
    assert list(answer_lines([row], "tsv", [*row], has_header=False)) == ["x\ty\\tz\\nw\t\t0.5"]


def test_answer_lines_of_json_keep_everything():
    row = {"text": "\u00e9", "n": [1, None], "score": 0.25}
    (line,) = answer_lines([row], "jsonl", [*row])
    assert json.loads(line) == row and "\u00e9" in line
