"""Size and checksum of files and folders: equal for the same content in any place."""

import os
import shutil

import pytest

from thincdialog.files.fingerprint import fingerprint


@pytest.mark.parametrize("size", [1, 1 << 16, (1 << 20) + 1, 6_000_000])
def test_every_byte_of_a_file_counts(tmp_path, size):
    path = tmp_path / "file"
    content = bytearray(size)
    path.write_bytes(content)
    before = fingerprint(str(path))
    assert before[0] == size and before == fingerprint(str(path))
    for at in {0, size // 2, size // 3, size - 1}:
        content[at] ^= 1
        path.write_bytes(content)
        changed = fingerprint(str(path))
        assert changed[0] == size and changed != before
        content[at] ^= 1
    path.write_bytes(bytes(size + 1))
    assert fingerprint(str(path)) != before


@pytest.fixture
def folder(tmp_path):
    """Make a folder with files, one of them in a subfolder."""
    (tmp_path / "data" / "in").mkdir(parents=True)
    for name in ("b", "a", "in/c"):
        (tmp_path / "data" / name).write_text(f"content of {name}")
    return tmp_path / "data"


def test_all_files_inside_a_folder_count(folder):
    before = fingerprint(str(folder))
    assert before[0] == 3 * len("content of b") + len("in/")
    (folder / "in" / "c").write_text("content of in/d")
    assert fingerprint(str(folder)) != before
    (folder / "in" / "c").write_text("content of in/c")
    assert fingerprint(str(folder)) == before
    (folder / "a").rename(folder / "z")
    assert fingerprint(str(folder)) != before
    (folder / "z").rename(folder / "a")
    (folder / "new").touch()
    assert fingerprint(str(folder)) != before


def test_a_folder_that_moved_is_the_same(folder, tmp_path, monkeypatch):
    before = fingerprint(str(folder))
    shutil.copytree(folder, tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    assert fingerprint("moved") == fingerprint("moved/") == fingerprint("./data") == before


def test_files_that_cannot_be_hashed(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert fingerprint(str(tmp_path / "pipe")) == [0, ""]
