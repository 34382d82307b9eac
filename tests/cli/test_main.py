"""Exit codes: Ctrl-C, pipes, full disks, files that custom code reads."""

import os
import subprocess
import sys
from unittest.mock import Mock

import pytest

from thincdialog.cli import main, train


@pytest.mark.parametrize(
    "line, code, err",
    [
        ("--help | true", 0, ""),  # Like "| head": the reader ends early.
        ("--help > /dev/full", 1, "✘ the output cannot be written: No space left on device\n"),
        ("trian", 2, "✘ there is no command 'trian' - did you mean 'train'?\n"),
    ],
)
def test_exit_code_of_a_process(line, code, err):
    if "/dev/full" in line and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    command = ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m thincdialog {line}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", err)


def test_exit_code_of_ctrl_c_outside_of_training(run, monkeypatch):
    monkeypatch.setattr(train, "run", Mock(side_effect=KeyboardInterrupt))
    assert run("train my.cfg") == (130, "", "⚠ Interrupted\n")


def test_exit_code_of_a_number_that_takes_all_memory(run, monkeypatch):
    error = MemoryError("Unable to allocate 268. GiB for an array with shape (72, 1000000001)")
    monkeypatch.setattr(train, "run", Mock(side_effect=error))
    code, out, err = run("train my.cfg")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("✘ there is not enough memory: unable to allocate 268. GiB for an")
    assert "; lower a setting that needs memory: " in err


READS = """
from thincdialog.api import IterableTeacher, registry


def rows():
    {statement}
    yield {{}}


@registry.teachers("{name}")
def reads():
    return IterableTeacher({{"train": rows}})
"""


@pytest.mark.parametrize(
    "statement, said",
    [
        ("open('none/rows.txt')", "none/rows.txt  cannot be read or written: No such file"),
        ("raise TimeoutError(110, 'Connection timed out')", "failed: Connection timed out"),
        ("raise OSError('no rows')", "failed: no rows (reads.py:6  in rows())"),
    ],
)
def test_exit_code_of_files_that_cannot_be_read(tmp_path, run, monkeypatch, statement, said):
    # Otherwise the output of the tests would be lost.
    monkeypatch.setattr(main, "_drop_output", lambda: None)
    monkeypatch.chdir(tmp_path)
    name = f"test_main.{len(statement)}.v1"
    (tmp_path / "reads.py").write_text(READS.format(statement=statement, name=name))
    sections = f'[tasks.x]\n@teachers = "{name}"\n[agent]\n@agents = "thincdialog.RepeatLabel.v1"\n'
    (tmp_path / "reads.cfg").write_text(sections)
    code, out, err = run("train reads.cfg --code reads.py")
    assert (code, out) == (1, "") and said in err
    assert "output cannot" not in err and "Traceback" not in err
