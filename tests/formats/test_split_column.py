"""One file with the rows of several splits."""

import json

import pytest

from thincdialog.errors import DataError
from thincdialog.formats.context import Bookmark
from thincdialog.formats.split_column import of_split
from thincdialog.teachers.json_layout import JSONLayout
from thincdialog.teachers.text_formats import LabelledText

ROWS = [
    {"q": "a", "y": "x", "part": "train"}, {"q": "b", "y": "x", "part": "Validation"},
    {"q": "c", "y": "y", "part": "test"}, {"q": "d", "y": "y", "part": "training"},
]  # fmt: skip


def texts(teacher):
    splits = ("train", "dev", "test")
    return {
        split: [m["text"] for m in teacher.for_split(split, training=True).examples()]
        for split in splits
    }


@pytest.mark.parametrize("streaming", [False, True])
def test_splits_of_one_file_are_distinguished_by_a_column(written, streaming):
    path = written(ROWS, "a.jsonl")
    table = written("q,y,part\n" + "".join("{q},{y},{part}\n".format(**r) for r in ROWS), "a.csv")
    layout = written("text: q\nlabel: y\nsplit: part\n", "my.yml")
    expected = {"train": ["a", "d"], "dev": ["b"], "test": ["c"]}
    for file in (path, table):
        given = {"train": file, "dev": file, "test": file, "streaming": streaming}
        teacher = LabelledText(text_field="q", label_field="y", split_field="part", **given)
        assert texts(teacher) == expected
        assert texts(JSONLayout(layout, **given)) == expected


def test_splits_without_any_row_are_errors(written):
    given = {"text_field": "q", "label_field": "y", "split_field": "part"}
    train = written(ROWS[:2], "a.jsonl")
    with pytest.raises(
        DataError, match="no row belongs to the split 'test' .found: 'train', 'Validation'.$"
    ):
        len(texts(LabelledText(train=train, dev=train, test=train, **given)))
    lacking = written([*ROWS, {"q": "e", "y": "x", "prt": "train"}], "b.jsonl")
    with pytest.raises(DataError, match=":5  the field 'part' is missing; did you mean 'prt'"):
        len(texts(LabelledText(train=lacking, dev=train, test=train, **given)))


def test_rows_of_no_known_split_are_errors_or_counted(written):
    rows = [*ROWS * 10, {"q": "e", "y": "x", "part": "holdout"}, {"q": "f", "y": "x", "part": ""}]
    layout = written("text: q\nlabel: y\nsplit: part\n", "my.yml")
    path = written(rows, "a.jsonl")
    given = {"train": path, "dev": path, "test": path}
    known = "expected train, training, dev, valid, validation, val, development, test, testing$"
    for teacher in (
        LabelledText(text_field="q", label_field="y", split_field="part", **given),
        JSONLayout(layout, **given),
    ):
        says = f"a.jsonl:41  the split 'holdout' is not known: {known}"
        with pytest.raises(DataError, match=says):
            texts(teacher)
    skipping = JSONLayout(layout, on_bad_data="skip", max_bad_share=0.5, **given)
    assert texts(skipping)["dev"] == ["b"] * 10
    counted = skipping.for_split("dev").data["dev"].bad_data()
    assert [bad.n_problems for bad in counted] == [2]
    whole = JSONLayout(layout, train=written(json.dumps(rows), "b.json"))
    with pytest.raises(DataError, match="b.json  the split 'holdout' is not known"):
        list(whole.for_split("train").examples())


def test_rows_of_a_split_may_all_be_before_a_bookmark():
    rows = [{"part": "dev"}]
    at = Bookmark({"line": 2})
    assert list(of_split(rows, "train", lambda row: row["part"], "a", at)) == []
    with pytest.raises(DataError):
        list(of_split(rows, "train", lambda row: row["part"], "a", Bookmark()))
