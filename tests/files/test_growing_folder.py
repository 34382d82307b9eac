"""Folders that grow beside their place."""

import os

import pytest

from thincdialog.errors import OutputError
from thincdialog.files.growing_folder import GrowingFolder


def test_growing_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made: Not a directory. Give another folder."):
        GrowingFolder(tmp_path / "file" / "store", "a fingerprint")


@pytest.mark.parametrize("name", ["numbers.npy", "other"])
def test_growing_folder_goes_on_from_nothing_that_is_no_plain_file(tmp_path, name):
    folder = GrowingFolder(tmp_path / "store", "a fingerprint")
    folder.array("numbers", "i8").append([1, 2])
    folder.close()
    beside = tmp_path / "store.building"
    (beside / name).unlink(missing_ok=True)
    os.mkfifo(beside / name)
    again = GrowingFolder(tmp_path / "store", "a fingerprint")
    assert again.state is None and not (beside / name).exists()
    again.close()
