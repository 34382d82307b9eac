"""Exit codes: signals, pipes, full disks, files of a user's code."""

import os
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import pytest

from thincdialog.cli import main, train
from thincdialog.config import shipped_configs

from .conftest import SMALL

COFFEE = shipped_configs()["quickstart"].read_text()


@pytest.mark.parametrize("code, number", [(75, signal.SIGTERM), (130, signal.SIGINT)])
def test_exit_code_of_signals(tmp_path, code, number):
    (tmp_path / "my.cfg").write_text(COFFEE)
    words = f"train my.cfg {SMALL} --training.max_epochs 100000 -o run".split()
    started = subprocess.Popen(
        [sys.executable, "-m", "thincdialog", *words],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore SIGINT, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    log = tmp_path / "run" / "log.jsonl"
    while not (log.is_file() and log.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(started.pid, number)
    _, err = started.communicate(timeout=60)
    assert started.returncode == code, err
    assert "Go on with: python -m thincdialog train my.cfg" in err and "--resume" in err


@pytest.mark.parametrize(
    "line, code, err",
    [
        ("--help | true", 0, ""),  # As "| head": the reader has had enough.
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


# A mutator that gets SIGTERM while the data is read.
STOP = """
import signal
from thincdialog.api import registry

@registry.mutators("test_main.stop.v1")
def stop():
    return lambda episode: signal.raise_signal(signal.SIGTERM) or [episode]
"""


def test_exit_code_of_sigterm_before_anything_is_saved(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code.py").write_text(STOP)
    section = '\n[tasks.coffee.mutators.*.stop]\n@mutators = "test_main.stop.v1"\n'
    (tmp_path / "begun.cfg").write_text(COFFEE + section)
    code, _, err = run("train begun.cfg --code code.py -o begun --resume")
    assert code == 143
    line = err.splitlines()[-1]
    assert "Interrupted before there was anything to save. Go on with: " in line
    assert line.endswith("train begun.cfg --output begun --resume --code code.py")


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
        ("raise OSError('no rows')", "reading or writing failed: no rows (--verbose"),
    ],
)
def test_exit_code_of_files_that_cannot_be_read(tmp_path, run, monkeypatch, statement, said):
    # The tests' own output would go nowhere.
    monkeypatch.setattr(main, "_drop_output", lambda: None)
    monkeypatch.chdir(tmp_path)
    name = f"test_main.{len(statement)}.v1"
    (tmp_path / "reads.py").write_text(READS.format(statement=statement, name=name))
    sections = f'[tasks.x]\n@teachers = "{name}"\n[agent]\n@agents = "thincdialog.RepeatLabel.v1"\n'
    (tmp_path / "reads.cfg").write_text(sections)
    code, out, err = run("train reads.cfg --code reads.py")
    assert (code, out) == (1, "") and said in err
    assert "output cannot" not in err and "Traceback" not in err
