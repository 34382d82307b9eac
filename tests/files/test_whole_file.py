"""Files that are written completely or not at all."""

import os
from pathlib import Path

import pytest

from thincdialog.files.whole_file import is_plain, whole_file


def test_whole_file_is_synced_before_it_replaces_the_old_one(tmp_path, monkeypatch):
    path, done = tmp_path / "a.txt", []
    path.write_text("old")
    sync = os.fsync

    def fsync(handle):
        sync(handle)
        done.append((os.fstat(handle).st_ino, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    with whole_file(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path and path.read_text() == "old"
    # First its content is synced, then its name.
    assert done == [(path.stat().st_ino, "old"), (tmp_path.stat().st_ino, "new")]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_whole_file_that_fails_leaves_the_old_one(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(error), whole_file(path) as temporary:
        temporary.write_text("new")
        raise error
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_whole_file_follows_links_and_writes_to_pipes_as_they_are(tmp_path):
    (tmp_path / "to").write_text("old")
    (tmp_path / "link").symlink_to("to")
    with whole_file(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "to").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    with whole_file(tmp_path / "pipe") as place:
        assert place == tmp_path / "pipe"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "to"]


def test_is_plain_is_false_for_open_files_devices_and_pipes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "a.txt", "w") as file:
        assert not is_plain(Path(f"/dev/fd/{file.fileno()}"))
    names = ("/dev/stdout", "/dev/null", str(tmp_path), str(tmp_path / "pipe"))
    assert not any(is_plain(Path(name)) for name in names)
    assert is_plain(tmp_path / "a.txt") and is_plain(tmp_path / "new.txt")
