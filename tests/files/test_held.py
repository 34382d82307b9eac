"""Temporary files and folders: those of dead processes are removed, those of others are kept."""

import multiprocessing
import os
import signal

import pytest

from thincdialog.files.held import held, repair

spawning = multiprocessing.get_context("fork")


def hold(place, is_folder, pipe):
    with held(place, 0o700, is_folder) as path:
        pipe.send(path)
        pipe.recv()


@pytest.mark.parametrize("is_folder", [False, True])
def test_held_paths_of_dead_processes_are_removed_and_others_kept(tmp_path, is_folder):
    place = tmp_path / "a (1).txt"
    holders = []
    for _ in range(2):
        pipe, theirs = spawning.Pipe()
        process = spawning.Process(target=hold, args=(place, is_folder, theirs))
        process.start()
        holders.append((process, pipe, pipe.recv()))
    (dead, _, lost), (living, pipe, kept) = holders
    other = tmp_path / ".b (1).txt.0123abcd"
    other.write_text("of another place")
    assert lost.is_dir() == is_folder and lost.stat().st_mode & 0o77 == 0
    os.kill(dead.pid, signal.SIGKILL)
    dead.join()
    with held(place, 0o777, is_folder) as own:
        assert set(tmp_path.iterdir()) == {own, kept, other}
    assert set(tmp_path.iterdir()) == {kept, other}
    pipe.send("enough")
    living.join()
    assert living.exitcode == 0 and list(tmp_path.iterdir()) == [other]


def test_held_does_not_remove_other_files(tmp_path):
    """Nothing is opened that could block, and no link is followed."""
    (tmp_path / "mine").mkdir()
    (tmp_path / ".a.0123abcd").symlink_to(tmp_path / "mine")
    os.mkfifo(tmp_path / ".a.1123abcd")
    (tmp_path / ".a.2123abcd.txt").write_text("")
    before = set(tmp_path.iterdir())
    repair(tmp_path, "a")
    assert set(tmp_path.iterdir()) == before
    repair(tmp_path / "not there", "a")


def test_held_folder_that_was_being_replaced_comes_back(tmp_path):
    for place in ("gone", "there"):
        (tmp_path / f".{place}.old.0123abcd").mkdir()
        (tmp_path / f".{place}.old.0123abcd" / "file").write_text("old")
    (tmp_path / "there").mkdir()
    repair(tmp_path, "gone|there")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gone", "there"]
    assert (tmp_path / "gone" / "file").read_text() == "old"
    assert list((tmp_path / "there").iterdir()) == []
