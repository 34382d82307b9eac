"""Numbered lines of fbdialog and bAbI."""

import pytest

from thincdialog.formats.numbered_text import read_numbered_text
from thincdialog.teachers.text_formats import NumberedText


def facts(path, third, **choices):
    """Return the id, text and labels of each turn, and the value of its third column."""
    return [
        (turn["id"], turn["text"], turn["labels"], turn.get(third))
        for episode in read_numbered_text(path, **choices)
        for turn in episode
    ]


def test_numbered_text_reads_babi_questions(written):
    path = written(
        "1 Mary moved to the bathroom.\n2 John went to the hallway.\n"
        "3 Where is Mary? \tbathroom\t1\n4 Daniel left.\n5 Where is John?\thallway\t2 4\n"
        "1 Sandra sat down.\n2 Who sat?\tSandra|she\t1\n3 Nobody asks any more.\n"
    )
    first = "Mary moved to the bathroom.\nJohn went to the hallway.\nWhere is Mary?"
    assert facts(path, "supporting") == [
        ("0/0", first, ["bathroom"], [1]),
        ("0/1", "Daniel left.\nWhere is John?", ["hallway"], [2, 4]),
        ("1/0", "Sandra sat down.\nWho sat?", ["Sandra", "she"], [1]),
    ]


def test_numbered_text_reads_fbdialog(written):
    path = written(
        "1 story\\nline\t\t0.5\n2 Q1?\tx\t1\tx|y|z\n\n3 Q2?\ty\t\n1 only a statement\n"
        "1 Q3?\tz\t-1\n"
    )
    assert facts(path, "reward", supporting=False) == [
        ("0/0", "story\nline\nQ1?", ["x"], 1.5),
        ("0/1", "Q2?", ["y"], None),
        ("1/0", "Q3?", ["z"], -1.0),
    ]
    first = next(read_numbered_text(path, supporting=False))
    assert [turn.get("label_candidates") for turn in first] == [["x", "y", "z"], None]


def test_numbered_text_removes_numbers_from_its_candidates(written):
    path = written("1 hello\tyes please\n")
    candidates = written("1 yes please\n1 no\n", "candidates.txt")
    teacher = NumberedText(test=path, candidates=candidates).for_split("test")
    assert teacher.act()["label_candidates"] == ["yes please", "no"]


@pytest.mark.parametrize(
    "line, message",
    [
        ("Where?\tthere", "expected a number, a space and a text, found 'Where?\\tthere'"),
        ("9" * 5000 + " Where?\tthere", "expected a number, a space and a text"),
        ("2 Where?\tthere\tright", "third column is 'right': expected numbers of supporting lines"),
        ("2 Where?\tthere\t1\tyes|no", "label 'there' is not among the 2 label_candidates"),
        ("2 Where?\tthere\tgood\tthere", "third column is 'good': expected a reward"),
    ],
)
def test_numbered_text_names_the_line_of_a_mistake(error, line, message):
    text = error(read_numbered_text, f"1 a\tb\n{line}\n")
    assert text.startswith(":2  ") and message in text


def test_numbered_text_without_questions_says_so(error):
    assert "no line has an answer after a tab" in error(read_numbered_text, "1 a\n2 b\n")
