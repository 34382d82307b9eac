"""Folders that grow under a temporary name next to their final place."""

import fcntl
import json
import os
from contextlib import closing

import numpy as np
import pytest

from thincdialog.errors import OutputError
from thincdialog.files import growing_folder
from thincdialog.files.growing_folder import GrowingFolder


def test_growing_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        OutputError, match="cannot be created: Not a directory. Give another folder."
    ):
        GrowingFolder(tmp_path / "file" / "store", "a fingerprint")


@pytest.mark.parametrize("left", [None, 7, 128 + 8])
def test_growing_folder_starts_from_scratch_if_the_disk_lost_rows(tmp_path, monkeypatch, left):
    monkeypatch.setattr(growing_folder, "SAVE_SECONDS", 0.0)
    folder = GrowingFolder(tmp_path / "store", "a fingerprint")
    folder.array("numbers", "i8").append([1, 2])
    folder.save("after 2")
    folder.close()
    path = tmp_path / "store.building" / "numbers.npy"
    with path.open("ab") as file:
        file.write(b"more")
    whole = GrowingFolder(tmp_path / "store", "a fingerprint")
    assert whole.state == "after 2" and whole.array("numbers", "i8").n_rows == 2
    whole.close()
    path.unlink() if left is None else os.truncate(path, left)
    again = GrowingFolder(tmp_path / "store", "a fingerprint")
    assert again.state is None and again.array("numbers", "i8").n_rows == 0
    again.array("numbers", "i8").append([5])
    again.end_arrays()
    again.finish({})
    assert np.load(tmp_path / "store" / "numbers.npy").tolist() == [5]


def test_growing_folder_starts_from_scratch_if_its_format_is_older(tmp_path, monkeypatch):
    monkeypatch.setattr(growing_folder, "SAVE_SECONDS", 0.0)
    folder = GrowingFolder(tmp_path / "store", "a fingerprint")
    folder.array("numbers", "i8").append([1, 2])
    folder.save("after 2")
    folder.close()
    journal = tmp_path / "store.building" / "journal.jsonl"
    first, *others = journal.read_text().splitlines()
    facts = json.loads(first)
    del facts["format"]  # As in journals before they named their format.
    journal.write_text("\n".join([json.dumps(facts), *others, ""]))
    again = GrowingFolder(tmp_path / "store", "a fingerprint")
    assert again.state is None and again.array("numbers", "i8").n_rows == 0
    again.close()


def test_growing_folder_that_another_process_moves_away_is_made_again(tmp_path, monkeypatch):
    flock, building = fcntl.flock, tmp_path / "store.building"
    moved = []

    def slow_flock(*given):
        if not moved:
            building.rename(tmp_path / "store")
            moved.append(True)
        return flock(*given)

    monkeypatch.setattr(fcntl, "flock", slow_flock)
    folder = GrowingFolder(tmp_path / "store", "a fingerprint")
    assert (building / "journal.jsonl").exists() and not list((tmp_path / "store").iterdir())
    with pytest.raises(OutputError, match="is being written by another process"):
        GrowingFolder(tmp_path / "store", "a fingerprint")
    folder.close()


@pytest.mark.parametrize("name", ["numbers.npy", "other"])
def test_growing_folder_does_not_resume_from_a_pipe(tmp_path, name):
    folder = GrowingFolder(tmp_path / "store", "a fingerprint")
    folder.array("numbers", "i8").append([1, 2])
    folder.close()
    building = tmp_path / "store.building"
    (building / name).unlink(missing_ok=True)
    os.mkfifo(building / name)
    again = GrowingFolder(tmp_path / "store", "a fingerprint")
    assert again.state is None and not (building / name).exists()
    again.close()


def test_growing_folder_may_be_a_link_to_another_disk(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "store.building").symlink_to(tmp_path / "disk")
    with closing(GrowingFolder(tmp_path / "store", "a fingerprint")) as folder:
        folder.array("numbers", "i8").append([1])
    assert (tmp_path / "disk" / "numbers.npy").exists()
