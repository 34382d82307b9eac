"""Candidates of labels, from a file."""

import pytest

from thincdialog.errors import DataError
from thincdialog.formats.candidates import read_list


def test_read_list_refuses_a_file_without_candidates(tmp_path):
    path = tmp_path / "candidates.txt"
    path.write_text("\n \n")
    with pytest.raises(DataError, match="has blank lines only"):
        read_list(path)
