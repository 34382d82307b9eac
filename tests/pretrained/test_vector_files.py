"""Vectors on disk: complete records survive whatever happens to the process that writes them."""

import os
import subprocess
import sys

import numpy as np
import pytest

from thincdialog.errors import OutputError
from thincdialog.pretrained.vector_files import VectorFiles, default_folder

WIDTH = 4
RECORD = 20 + 4 * WIDTH


def key(number):
    return number.to_bytes(16, "big")


def vectors(*numbers):
    return np.array([[number] * WIDTH for number in numbers], dtype="f")


def opened(folder, max_bytes=1 << 20, encoder="one"):
    return VectorFiles(folder, encoder, WIDTH, max_bytes)


def known(files, numbers=range(100)):
    found = {number: files.get(key(number)) for number in numbers}
    return {number: vector.tolist() for number, vector in found.items() if vector is not None}


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_vector_files_are_visible_at_once_and_to_others(tmp_path):
    files = opened(tmp_path)
    assert known(files) == {}
    for number in (3, 0, 7):
        files.add([key(number)], vectors(number))
    expected = {number: [float(number)] * WIDTH for number in (0, 3, 7)}
    assert known(files) == known(opened(tmp_path)) == expected
    assert known(opened(tmp_path, encoder="two")) == {}


def test_vector_files_keep_a_constant_number_of_files_open(tmp_path):
    files, n_open = opened(tmp_path), []
    for number in range(20):
        files.add([key(number)], vectors(number))
        n_open.append(len(os.listdir("/proc/self/fd")))
    assert max(n_open) == n_open[0] and sorted(known(files)) == list(range(20))


def test_vector_files_of_processes_that_write_at_the_same_time(tmp_path):
    one, two = opened(tmp_path), opened(tmp_path)
    for number in range(5):
        one.add([key(number)], vectors(number))
        two.add([key(number + 3)], vectors(number + 3))
    assert sorted(known(opened(tmp_path))) == list(range(8))


@pytest.mark.parametrize("kind, record", [("keys", 20), ("vectors", 4 * WIDTH)])
@pytest.mark.parametrize("left", [1, 7, 16])
def test_vector_files_ignore_an_incomplete_record(tmp_path, kind, record, left):
    files = opened(tmp_path)
    files.add([key(0), key(1), key(2)], vectors(0, 1, 2))
    (path,) = tmp_path.glob(f"one/*.{kind}")
    os.truncate(path, 2 * record + min(left, record - 1))
    assert sorted(known(opened(tmp_path))) == [0, 1]


def test_vector_files_ignore_a_damaged_vector(tmp_path):
    opened(tmp_path).add([key(0), key(1), key(2)], vectors(5, 6, 7))
    (path,) = tmp_path.glob("one/*.vectors")
    data = bytearray(path.read_bytes())
    data[4 * WIDTH : 8 * WIDTH] = bytes(4 * WIDTH)  # As after a power failure.
    path.write_bytes(data)
    files = opened(tmp_path)
    assert sorted(known(files)) == [0, 2]
    # Later runs find the vector that is computed instead.
    files.add([key(1)], vectors(6))
    assert known(opened(tmp_path))[1] == [6.0] * WIDTH


def test_vector_files_without_a_home_folder_name_the_settings(monkeypatch):
    def no_user(number):
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_user)
    with pytest.raises(OutputError, match="no home folder .* Set XDG_CACHE_HOME, or 'vectors'"):
        default_folder()


@pytest.mark.slow
def test_vector_files_survive_a_killed_process(tmp_path):
    code = f"""
import os, signal
from tests.pretrained.test_vector_files import *
files = opened(__import__("pathlib").Path({str(tmp_path)!r}))
files.add([key(0), key(1)], vectors(0, 1))
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    assert sorted(known(opened(tmp_path))) == [0, 1]


def test_vector_files_make_room_by_removing_what_was_used_least_recently(tmp_path):
    most = 6 * RECORD
    for number, encoder in enumerate(("old", "used", "one")):
        files = opened(tmp_path, most, encoder)
        files.add([key(number), key(number + 10)], vectors(number, number))
        for path in (tmp_path / encoder).iterdir():
            os.utime(path, (number, number))
    assert known(opened(tmp_path, most, "old"))  # Used: no longer the oldest.
    files.add([key(5)], vectors(5))
    assert size_of(tmp_path) <= most
    assert not known(opened(tmp_path, most, "used"))
    assert sorted(known(opened(tmp_path, most, "old"))) == [0, 10]
    assert sorted(known(opened(tmp_path, most))) == [2, 5, 12]


def test_vector_files_that_do_not_fit_say_so(tmp_path):
    files = opened(tmp_path, 3 * RECORD)
    files.add([key(0), key(1), key(2)], vectors(0, 1, 2))
    with pytest.raises(OutputError, match="Raise 'max_gb'"):
        files.add([key(3)], vectors(3))


def test_vector_files_in_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="set 'vectors'"):
        opened(tmp_path / "file").add([key(0)], vectors(0))
