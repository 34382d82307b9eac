"""Only plain files inside their folder are opened, and none of them can block the program."""

import os
import socket

import pytest

from thincdialog.files.plain_file import open_plain, read_plain


def pipe(path):
    os.mkfifo(path)


def listener(path):
    os.chdir(path.parent)  # The path of a socket must be short.
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def outside(path):
    (path.parent.parent / "other").write_text("{}")
    path.symlink_to("../other")


def kernel(path):
    path.symlink_to("/proc/self/status")


REFUSED = {
    pipe: "it is a pipe, expected a plain file",
    listener: "it is a socket, expected a plain file",
    os.mkdir: "it is a folder, expected a plain file",
    lambda path: path.symlink_to("/dev/zero"): "it leads out of its folder, to /dev/zero",
    kernel: "it leads out of its folder, to /proc",
    outside: "it leads out of its folder, to .*other",
    lambda path: path.symlink_to(path.name): "Too many levels of symbolic links",
    lambda path: path.write_bytes(b"x" * 101): "it has 101 bytes, expected 100 at most",
}


@pytest.mark.parametrize("make, reason", REFUSED.items(), ids=range(len(REFUSED)))
def test_plain_file_refuses_all_other_files(tmp_path, monkeypatch, make, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    path = tmp_path / "model" / "file"
    make(path)
    with pytest.raises(OSError, match=reason) as caught:
        read_plain(path, 100)
    assert caught.value.strerror


def test_plain_file_may_be_a_link_within_the_folder(tmp_path):
    (tmp_path / "a").write_text("text")
    (tmp_path / "b").symlink_to("a")
    assert read_plain(tmp_path / "b") == b"text"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "c").symlink_to("../a")
    with pytest.raises(OSError, match="leads out"):
        open_plain(tmp_path / "in" / "c")
    with open_plain(tmp_path / "in" / "c", within=tmp_path) as file:
        assert file.read() == b"text"
