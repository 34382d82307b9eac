"""Every exit code of the command line, in one table."""

import os
import signal
import subprocess
import sys
import time

import pytest

from thincdialog.cli.main import EXIT_CODES
from thincdialog.config import shipped_configs

# Exit code, command line, and what stderr says.
TABLE = [
    (0, "debug config quickstart.cfg", "nothing is wrong"),
    (0, "debug data few.cfg --no-histograms", ""),  # It warns, on stdout.
    (0, "--version", ""),
    (0, "debug --help", ""),
    (0, "train --help", ""),
    (1, "train missing.cfg", "missing.cfg"),
    (1, "train bad.cfg", "did you mean 'max_epochs'?"),
    (1, "debug config bad.cfg", "bad.cfg:"),
    (1, "debug config bad.cfg --json", ""),
    (1, "debug data ranker.cfg", "Give it with --paths.train FILE"),
    (1, "debug data ranker.cfg --paths.train nowhere.jsonl", "nowhere.jsonl  file not found"),
    (1, "evaluate nowhere", "nowhere"),
    (1, "chat nowhere", "nowhere"),
    (1, "init config quickstart.cfg", "is there already"),
    (1, "init config --from nothing new.cfg", "nothing"),
    (1, "find-function Nothing.v1", "there is no registered function"),
    (2, "", ""),
    (2, "trian quickstart.cfg", "did you mean 'train'?"),
    (2, "train", "CONFIG"),
    (2, "train quickstart.cfg --max_steps 3", "--training.max_steps"),
    (2, "train quickstart.cfg --nonsense", "--nonsense"),
    (2, "dd quickstart.cfg --split valid", "invalid choice: 'valid'"),
    (2, "dd quickstart.cfg -n -1", "should be 0 or more"),
    (2, "compare a b --resamples 0", "should be 1 or more"),
    (2, "debug", "'debug' needs one of"),
    (2, "info --training.max_steps 3", "this command changes no settings"),
    (2, "find-function --list nothing", "there is no registry"),
    (2, "completion powershell", "invalid choice"),
]

# A mutator that gets SIGTERM while the data is read.
CODE = """
import signal
from thincdialog.api import registry

@registry.mutators("test_exit_codes.stop.v1")
def stop():
    return lambda episode: signal.raise_signal(signal.SIGTERM) or [episode]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codes")
    for name in ("quickstart", "ranker"):
        (folder / f"{name}.cfg").write_text(shipped_configs()[name].read_text())
    text = shipped_configs()["quickstart"].read_text()
    (folder / "bad.cfg").write_text(text.replace("max_epochs", "max_epokhs"))
    (folder / "few.cfg").write_text(text.replace("n_train = 3000", "n_train = 2"))
    return folder


def command(words):
    return [sys.executable, "-m", "thincdialog", *words.split()]


@pytest.mark.parametrize("code, words, said", TABLE, ids=[row[1] for row in TABLE])
def test_exit_code(folder, code, words, said):
    done = subprocess.run(command(words), cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr
    # What is wrong is no result.
    if code and words and "--json" not in words:
        assert done.stdout == ""


@pytest.mark.parametrize("code, number", [(75, signal.SIGTERM), (130, signal.SIGINT)])
def test_exit_code_of_signals(folder, code, number):
    run = f"run{code}"
    words = f"train quickstart.cfg --training.max_epochs 1000 --tasks.coffee.n_train 50 -o {run}"
    process = subprocess.Popen(
        command(words),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore SIGINT, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    log = folder / run / "log.jsonl"
    while not (log.is_file() and log.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "Go on with: python -m thincdialog train quickstart.cfg" in err and "--resume" in err


def test_exit_code_of_sigterm_before_anything_is_saved(folder):
    (folder / "code.py").write_text(CODE)
    section = '[tasks.coffee.mutators.*.stop]\n@mutators = "test_exit_codes.stop.v1"\n'
    (folder / "begun.cfg").write_text((folder / "quickstart.cfg").read_text() + "\n" + section)
    words = command("train begun.cfg --code code.py -o begun --resume")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 143, done.stderr
    line = done.stderr.splitlines()[-1]
    assert "Interrupted before there was anything to save. Go on with: " in line
    assert line.endswith("train begun.cfg --output begun --resume --code code.py")


def test_exit_codes_are_all_in_the_table():
    assert {row[0] for row in TABLE} | {75, 130, 143} == set(EXIT_CODES)


READS = """
from thincdialog.api import IterableTeacher, registry


def rows():
    {statement}
    yield {{}}


@registry.teachers("test_exit_codes.reads.v1")
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
def test_exit_code_of_files_that_a_users_code_cannot_read(folder, statement, said):
    (folder / "reads.py").write_text(READS.format(statement=statement))
    config = '[tasks.x]\n@teachers = "test_exit_codes.reads.v1"\n'
    (folder / "reads.cfg").write_text(f'{config}[agent]\n@agents = "thincdialog.RepeatLabel.v1"\n')
    words = command("train reads.cfg --code reads.py")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert said in done.stderr and "output cannot" not in done.stderr
    assert "Traceback" not in done.stderr
