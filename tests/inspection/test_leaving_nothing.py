"""Trial runs of code change nothing outside."""

import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from thincdialog.inspection.leaving_nothing import LeavingError, leaving_nothing


def test_files_within_work_as_usual_and_are_removed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with leaving_nothing() as folder:
        # The folder is created, because it may exist outside.
        Path("logs/run/a.txt").write_text("row")
        with tempfile.NamedTemporaryFile(delete=False) as file:
            Path(file.name).replace(folder / "b.txt")
        sqlite3.connect(":memory:").close()
        Path(os.devnull).write_text("x")
        sys.stdout.write("rows")
        assert {path.name for path in folder.iterdir()} == {"logs", "b.txt"}
        assert Path("logs/run/a.txt").read_text() == "row"
    assert not folder.exists() and not list(tmp_path.iterdir()) and Path.cwd() == tmp_path
    assert capsys.readouterr().out == ""
    Path("after.txt").write_text("x")


TRIED = {
    "open": lambda path: path.write_text("x"),
    "append": lambda path: open(path, "a"),
    "mkdir": lambda path: path.mkdir(),
    "rename": lambda path: (path.parent / "kept").rename(path),
    "remove": lambda path: (path.parent / "kept").unlink(),
    "sqlite": lambda path: sqlite3.connect(path),
    "link": lambda path: path.symlink_to("kept"),
    "shell": lambda path: os.system(f"touch {path}"),
    "process": lambda path: subprocess.run(["touch", path]),
    "server": lambda path: socket.create_connection(("127.0.0.1", 9)),
    "name": lambda path: socket.getaddrinfo("localhost", 9),
}


@pytest.mark.parametrize("what", TRIED)
def test_nothing_outside_changes(what, tmp_path):
    (tmp_path / "kept").write_text("x")
    with pytest.raises(LeavingError):
        with leaving_nothing():
            TRIED[what](tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
