"""Labelled texts in JSONL, CSV and TSV."""

import pytest

from thincdialog.errors import ConfigError, DataError
from thincdialog.formats.context import tolerating
from thincdialog.formats.labelled_text import read_labelled_text
from thincdialog.teachers.text_formats import LabelledText


def rows(path, **choices):
    return [(m["text"], m["labels"]) for (m,) in read_labelled_text(path, **choices)]


SAME = [("book, a table", ["book"]), ("hi", ["greet"])]


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.jsonl", '{"text": "book, a table", "label": "book"}\n{"text":"hi","label":"greet"}'),
        ("a.jsonl.gz", '{"text": "book, a table", "label": "book"}\n{"text":"hi","label":"greet"}'),
        ("a.csv", 'label,text\r\nbook,"book, a table"\r\n\r\ngreet,hi\r\n'),
        ("a.csv.gz", 'text,label,other\n"book, a table",book,1\nhi,greet,2\n'),
        ("a.tsv", "text\tlabel\nbook, a table\tbook\nhi\tgreet\n"),
    ],
)
def test_labelled_text_reads_every_format(written, name, text):
    assert rows(written(text, name)) == SAME


def test_labelled_text_fields_labels_and_ids(written):
    given_rows = ["", {"q": "", "y": 3}, {"q": "two", "y": ["a", "b"], "text": None}]
    path = written(given_rows, "a.jsonl")
    episodes = list(read_labelled_text(path, text_field="q", label_field="y"))
    assert episodes == [
        [{"id": "2/0", "text": "", "labels": ["3"]}],
        [{"id": "3/0", "text": "two", "labels": ["a", "b"]}],
    ]


def test_labelled_text_quoted_fields_and_tsv_quotes(written):
    path = written('text,label\n"two\nlines ""quoted""",x\nlast,y\n', "a.csv")
    assert rows(path) == [('two\nlines "quoted"', ["x"]), ("last", ["y"])]
    path = written('text\tlabel\n"open quote\tx\n', "a.tsv")
    assert rows(path) == [('"open quote', ["x"])]


def test_labelled_text_without_a_header(written):
    path = written("greet,hi\nbye,see you\n", "a.csv")
    assert rows(path, columns=["label", "text"]) == [("hi", ["greet"]), ("see you", ["bye"])]
    with pytest.raises(ConfigError, match="name 'text' and 'label' in it"):
        LabelledText(train=path, columns=["words", "label"])


@pytest.mark.parametrize(
    "name, text, line, message",
    [
        ("a.jsonl", '{"text": "a", "labl": "x"}', 1, "'label' is missing; did you mean 'labl'?"),
        ("a.jsonl", '\n{"text": 1, "label": "x"}', 2, "'text' is a number, not a string"),
        ("a.jsonl", '{"text": "a", "label": true}', 1, "'label' is true or false; expected"),
        ("a.jsonl", '{"text": "a", "label": null}', 1, "'label' is null; expected"),
        ("a.jsonl", '{"text": "a", "label": ""}', 1, "'label' is empty"),
        ("a.jsonl", '{"text": "a", "label": []}', 1, "'label' is empty"),
        ("a.csv", "utterance,label\nhi,x", 1, "column 'text' is missing (found: 'utterance'"),
        ("a.csv", "text,text,label\nhi,ho,x\n", 1, "2 columns are called 'text'"),
        ("a.csv", "text,label\nhi,x\nhi, you,x\n", 3, "expected 2 columns, found 3"),
        ("a.csv", 'text,label\n"hi"you,x\n', 2, "not readable as csv"),
        (
            "a.tsv",
            "text\tlabel\nhi\n",
            2,
            "expected 2 columns, found 1: a text must contain no tab or line",
        ),
        ("a.tsv", "text\tlabel\nhi\t\n", 2, "'label' is empty"),
        ("a.csv", "text,label\n", None, "holds no examples"),
        ("a.txt", "hi\n", None, "has the unknown suffix '.txt'"),
    ],
)
def test_labelled_text_names_the_line_of_a_mistake(error, name, text, line, message):
    said = error(read_labelled_text, text, name)
    assert said.startswith(f":{line}  " if line else "  ") and message in said


def test_labelled_text_holds_out_a_share_by_seed(written):
    path = written([{"text": str(number), "label": "x"} for number in range(1000)], "a.jsonl")

    def parts(**choices):
        teacher = LabelledText(train=path, dev_share=0.2, **choices)
        return [{m["text"] for m in teacher.for_split(s).examples()} for s in ("train", "dev")]

    train, dev = parts()
    assert len(train) + len(dev) == 1000 and not train & dev and 160 < len(dev) < 240
    assert parts() == [train, dev] and parts(dev_seed=1)[1] != dev


@pytest.mark.parametrize("choices", [{"dev_share": 1.0}, {"dev_share": -0.1},
                                     {"dev_share": 0.1, "dev": "b.jsonl"}])  # fmt: skip
def test_labelled_text_refuses_an_invalid_share(choices):
    with pytest.raises(ConfigError, match="dev_share"):
        LabelledText(train="a.jsonl", **choices)


def test_labelled_text_is_known_to_have_single_turns(written):
    path = written("text\tlabel\nhi\tx\nho\ty\n", "a.tsv")
    assert LabelledText(test=path, streaming=True).for_split("test").is_single_turn


SEVERAL = [("a", ["x", "y"]), ("b", ["y"])]


@pytest.mark.parametrize(
    "name, text, choices",
    [
        ("a.csv", "text,label\na, x | y |x\nb,y\n", {"label_separator": "|"}),
        ("a.jsonl", '{"text": "a", "label": "x;y"}\n{"text": "b", "label": ["y"]}',
         {"label_separator": ";"}),
        ("a.csv", "text,first,second\na,x,y\nb,,y\n", {"label_field": ["first", "second"]}),
        ("a.csv", "text,x,y\na,1,True\nb,0,1\n", {"label_field": ["x", "y"]}),
        ("a.jsonl", '{"text": "a", "x": true, "y": 1}\n{"text": "b", "x": null, "y": "TRUE"}',
         {"label_field": ["x", "y"]}),
    ],
)  # fmt: skip
def test_labelled_text_with_several_labels(written, name, text, choices):
    assert rows(written(text, name), **choices) == SEVERAL


@pytest.mark.parametrize(
    "name, text, choices",
    [
        ("a.csv", "text,label\na,\n", {}),
        ("a.csv", "text,label\na,|\n", {"label_separator": "|"}),
        ("a.csv", "text,x,y\na,0,0\n", {"label_field": ["x", "y"]}),
        ("a.jsonl", '{"text": "a", "label": []}', {}),
    ],
)
def test_labelled_text_without_labels_is_an_error_unless_tolerated(written, name, text, choices):
    path = written(text, name)
    with pytest.raises(DataError, match=r":\d  '.*' is empty: give the example a label"):
        rows(path, **choices)
    for unlabelled in (False, True):
        with tolerating(empty_labels=True, unlabelled=unlabelled):
            assert rows(path, **choices) == [("a", [])]


@pytest.mark.parametrize(
    "cells, wrong",
    [
        ("1 0 maybe", "'urgent' is 'maybe' here and '1' in an earlier row"),
        ("0 2", "'urgent' is '2' here and '0' in an earlier row"),
        ("yes 0", "'urgent' is '0' here and 'yes' in an earlier row"),
    ],
)
def test_labelled_text_column_with_marks_and_labels_is_an_error(written, cells, wrong):
    lines = ["text,urgent,topic", "t,,new", *(f"t,{cell},old" for cell in cells.split())]
    path = written("\n".join(lines), "a.csv")
    with pytest.raises(DataError) as caught:
        rows(path, label_field=["urgent", "topic"])
    expected = "expected 1, 0, true or false (or nothing) in all rows, or labels in all"
    assert str(caught.value) == f"{path}:{len(lines)}  {wrong}: {expected}"


def test_labelled_text_with_missing_labels_is_always_an_error(written):
    with tolerating(empty_labels=True):
        for text, what in (('{"text": "a"}', "missing"), ('{"text":"a","label":null}', "is null")):
            with pytest.raises(DataError, match=what):
                rows(written(text, "a.jsonl"))


@pytest.mark.parametrize("row", ['{"text": "a"}', '{"text": "a", "label": null}'])
def test_labelled_text_with_unknown_labels_is_unlabelled_if_tolerated(written, row):
    with tolerating(empty_labels=True, unlabelled=True):
        ((message,),) = read_labelled_text(written(row, "a.jsonl"), "text", "label")
    assert "labels" not in message


@pytest.mark.parametrize("choices", [{"label_field": []}, {"label_separator": ""}])
def test_labelled_text_empty_settings_are_refused(choices):
    with pytest.raises(ConfigError, match="is empty"):
        LabelledText(train="a.csv", **choices)
