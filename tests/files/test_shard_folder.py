"""Folders that are written in shards next to their final place."""

import os
from contextlib import closing

import numpy as np
import pytest

from thincdialog.errors import DataError, OutputError
from thincdialog.files import shard_folder
from thincdialog.files.shard_folder import ShardFolder


def numbers(*values):
    return {"numbers": np.array(values, dtype="i8")}


def written(place, *values, state=None):
    """Write a shard of numbers, as a process that is then stopped."""
    with closing(ShardFolder(place, "a fingerprint")) as folder:
        folder.add(numbers(*values), state)


def test_shard_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        OutputError, match="cannot be created: Not a directory. Give another folder."
    ):
        ShardFolder(tmp_path / "file" / "store", "a fingerprint")


@pytest.mark.parametrize("n_lost", [0, 1, 2])
def test_shard_folder_continues_after_the_last_whole_shard(tmp_path, n_lost):
    for number in range(3):
        written(tmp_path / "store", number, number, state=number)
    building = tmp_path / "store.building"
    (building / "new").write_bytes(b"more")
    for path in sorted(building.glob("*.npz"))[3 - n_lost :]:
        path.unlink()
    with closing(ShardFolder(tmp_path / "store", "a fingerprint")) as folder:
        kept = 3 - n_lost
        assert folder.state == kept - 1 and folder.n_rows["numbers"] == 2 * kept
        assert sorted(building.iterdir()) == folder.paths and len(folder.paths) == kept
        folder.add(numbers(5))
        folder.finish({"about": 7}, {})
    wanted = [number for number in range(kept) for _ in range(2)] + [5]
    assert np.load(tmp_path / "store" / "numbers.npy").tolist() == wanted
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_shard_folder_starts_from_scratch_if_a_shard_is_missing(tmp_path):
    for number in range(3):
        written(tmp_path / "store", number, state=number)
    (tmp_path / "store.building" / "00000001.npz").unlink()
    with closing(ShardFolder(tmp_path / "store", "a fingerprint")) as folder:
        assert folder.state is None and not list(folder.shards.iterdir())


@pytest.mark.parametrize("damage", ["fingerprint", "format", "cut", "pipe"])
def test_shard_folder_starts_from_scratch_if_its_last_shard_is_another(
    tmp_path, monkeypatch, damage
):
    fingerprint = "another" if damage == "fingerprint" else "a fingerprint"
    written(tmp_path / "store", 1, 2)
    path = tmp_path / "store.building" / "00000000.npz"
    if damage == "format":
        monkeypatch.setattr(shard_folder, "FORMAT", shard_folder.FORMAT + 1)
    elif damage == "cut":
        os.truncate(path, 100)
    elif damage == "pipe":
        path.unlink()
        os.mkfifo(path)
    with closing(ShardFolder(tmp_path / "store", fingerprint)) as folder:
        assert folder.state is None and not folder.n_rows["numbers"]
        assert not list(path.parent.iterdir())


def test_shard_folder_with_a_damaged_shard_is_one_line(tmp_path):
    written(tmp_path / "store", 1, 2)
    written(tmp_path / "store", 3)
    os.truncate(tmp_path / "store.building" / "00000000.npz", 100)
    with closing(ShardFolder(tmp_path / "store", "a fingerprint")) as folder:
        with pytest.raises(DataError, match="00000000.npz  is damaged. Remove its folder"):
            folder.finish({}, {})
    assert not (tmp_path / "store").exists()


def test_shard_folder_is_written_by_one_process_at_a_time(tmp_path):
    with closing(ShardFolder(tmp_path / "store", "a fingerprint")):
        with pytest.raises(OutputError, match="store  is being written by another process"):
            ShardFolder(tmp_path / "store", "a fingerprint")
    ShardFolder(tmp_path / "store", "a fingerprint").close()


def test_shard_folder_may_be_a_link_to_another_disk(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "store.building").symlink_to(tmp_path / "disk")
    with closing(ShardFolder(tmp_path / "store", "a fingerprint")) as folder:
        folder.add(numbers(1))
        assert list((tmp_path / "disk").iterdir())
        folder.finish({}, {})
    assert np.load(tmp_path / "store" / "numbers.npy").tolist() == [1]
