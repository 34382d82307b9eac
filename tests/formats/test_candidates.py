"""Candidates of labels, from a file."""

import pytest

from thincdialog.errors import DataError
from thincdialog.formats.candidates import read_candidates, read_list


@pytest.fixture
def file_of(tmp_path):
    def write(text):
        path = tmp_path / "candidates.txt"
        path.write_text(text)
        return path

    return write


def test_read_list_refuses_a_file_without_candidates(file_of):
    with pytest.raises(DataError, match="has only blank lines"):
        read_list(file_of("\n \n"))


@pytest.mark.parametrize(
    "text, candidates",
    [
        ("1 yes please\n1 no\n1 2 boats\n", ["yes please", "no", "2 boats"]),  # As in bAbI.
        ("1 tea\n2 milk\\nand honey\n", ["tea", "milk\nand honey"]),
        ("1 Hi\tHello\n2 Boat?\tFour|Five\t1\n3 I see\n1 Hi\tHello\n", ["Hello", "Four", "Five"]),
        ("1 cup\ntwo cups\n", ["1 cup", "two cups"]),  # Not all lines have a number.
        ("2 cups\n3 cups\n", ["2 cups", "3 cups"]),  # Numbers of a list start at 1.
        ("a\tb\n", ["a\tb"]),
    ],
)
def test_candidates_are_read_from_lists_and_from_numbered_lines(file_of, text, candidates):
    assert read_candidates(file_of(text)) == candidates


def test_numbered_lines_without_a_reply_are_an_error(file_of):
    with pytest.raises(DataError, match="no line has a reply after a tab"):
        read_candidates(file_of("1 hello\t\n"))
