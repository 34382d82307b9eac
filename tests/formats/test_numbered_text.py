"""Numbered lines of fbdialog and bAbI."""

import pytest

from thincdialog.formats.numbered_text import read_numbered_text
from thincdialog.teachers.numbered_text import NumberedText


def test_numbered_text_reads_babi_questions(written):
    path = written(
        "1 Mary moved to the bathroom.\n2 John went to the hallway.\n"
        "3 Where is Mary? \tbathroom\t1\n4 Daniel left.\n5 Where is John?\thallway\t2 4\n"
        "1 Sandra sat down.\n2 Who sat?\tSandra|she\t1\n3 Nobody asks any more.\n",
    )
    assert list(read_numbered_text(path)) == [
        [
            {
                "id": "0/0",
                "text": "Mary moved to the bathroom.\nJohn went to the hallway.\nWhere is Mary?",
                "labels": ["bathroom"], "supporting": [1],
            },
            {
                "id": "0/1", "text": "Daniel left.\nWhere is John?",
                "labels": ["hallway"], "supporting": [2, 4],
            },
        ],
        [
            {
                "id": "1/0", "text": "Sandra sat down.\nWho sat?",
                "labels": ["Sandra", "she"], "supporting": [1],
            }
        ],
    ]  # fmt: skip


def test_numbered_text_reads_fbdialog(written):
    path = written(
        "1 story\\nline\t\t0.5\n2 Q1?\tx\t1\tx|y|z\n\n3 Q2?\ty\t\n1 only a statement\n"
        "1 Q3?\tz\t-1\n",
    )
    assert list(read_numbered_text(path, supporting=False)) == [
        [
            {
                "id": "0/0", "text": "story\nline\nQ1?", "labels": ["x"], "reward": 1.5,
                "label_candidates": ["x", "y", "z"],
            },
            {"id": "0/1", "text": "Q2?", "labels": ["y"]},
        ],
        [{"id": "1/0", "text": "Q3?", "labels": ["z"], "reward": -1.0}],
    ]  # fmt: skip


def test_numbered_text_takes_numbers_off_its_candidates(written):
    path = written("1 hello\tyes please\n")
    candidates = written("1 yes please\n1 no\n", "candidates.txt")
    teacher = NumberedText(test=path, candidates=candidates).for_split("test")
    assert teacher.act()["label_candidates"] == ["yes please", "no"]


@pytest.mark.parametrize(
    "line, message",
    [
        ("Where?\tthere", "expected a number, a blank and a text, found 'Where?\\tthere'"),
        ("9" * 5000 + " Where?\tthere", "expected a number, a blank and a text"),
        ("2 Where?\tthere\tright", "third column is 'right': expected numbers of supporting lines"),
        ("2 Where?\tthere\t1\tyes|no", "label 'there' is not among the 2 label_candidates"),
        ("2 Where?\tthere\tgood\tthere", "third column is 'good': expected a reward"),
    ],
)
def test_numbered_text_names_the_line_of_a_mistake(error, line, message):
    text = error(read_numbered_text, f"1 a\tb\n{line}\n")
    assert text.startswith(":2  ") and message in text


def test_numbered_text_without_questions_says_so(error):
    assert "no line has an answer behind a tab" in error(read_numbered_text, "1 a\n2 b\n")
