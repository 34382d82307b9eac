"""Workers that fail, die or are interrupted: the run ends soon, with one clear line, and keeps the
files that were saved before."""

import io
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.fuzzing import SEED, TIMES
from tests.processes import left_over, slow, start
from tests.runners.resuming import AMONG_ALL, FIXED, config
from tests.runners.test_hogwild import AGENT, CODE
from thincdialog.api import DataError, Interrupted, WorkerError, train
from thincdialog.config import load_code
from thincdialog.runs.run_log import read_log

# An epoch has 15 steps of one example each. The run evaluates and saves at steps 10, 20, ...
TEXT = (
    config(FIXED, AMONG_ALL, tasks=1)
    .replace(*AGENT)
    .replace("size = 4", "size = 1")
    .replace("max_epochs = 2.0", "max_epochs = 0\nmax_steps = 300")
    .replace("eval_every_epochs = 0.5", "eval_every_epochs = 0\neval_every_steps = 10")
    .replace("checkpoint_every_steps = 2", "checkpoint_every_steps = 10")
    + '\n[runner]\n@runners = "tests.impatient.v1"\n'
)


class Runs:
    """Trains in a folder, in this process or in a separate one, and reads the files of the run."""

    def __init__(self, folder: Path, monkeypatch):
        self.folder, self.out, self.monkeypatch = folder, folder / "out", monkeypatch
        self.shown = ""

    def train(self, executor: str, *, mischief: str = "", **overrides):
        """Train in this process. Its stderr is in ``shown``."""
        self.monkeypatch.setenv("NOTES", str(self.folder / "notes"))
        self.monkeypatch.setenv("MISCHIEF", mischief)
        changes = {"runner.executor": executor}
        changes.update({name.replace("__", "."): value for name, value in overrides.items()})
        options = {"overrides": changes, "resume": self.out.exists(), "code": CODE}
        streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
        try:
            return train(TEXT, output=self.out, **options, **streams)
        finally:
            self.shown = streams["stderr"].getvalue()
            assert multiprocessing.active_children() == []
            os.environ["MISCHIEF"] = ""  # Hanging workers continue.

    def start(self, executor: str, *more: str, mischief: str = "slow -"):
        """Train in a separate process, which leads a session."""
        (self.folder / "config.cfg").write_text(TEXT)
        notes = {"NOTES": str(self.folder / "notes"), "MISCHIEF": mischief}
        command = ["train", "config.cfg", "-o", "out", "--code", str(CODE), *more]
        options = {"stdout": subprocess.PIPE, "start_new_session": True}
        # Background jobs of a shell ignore SIGINT, and this process would inherit that.
        options["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        command += ["--runner.executor", executor]
        return start(self.folder, *command, env=notes, **options)

    def notes(self):
        path = self.folder / "notes"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def made(self):
        return [note for note in self.notes() if "step" in note]

    def await_steps(self, process, n_steps):
        while len(self.made()) < n_steps:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)

    def await_notes(self, is_enough, then):
        """Call `then` in a thread as soon as `is_enough` accepts the notes."""

        def wait():
            until = time.monotonic() + 60
            while not is_enough(self.notes()) and time.monotonic() < until:
                time.sleep(0.01)
            then()

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    def steps(self):
        return sorted(int(path.name.rpartition("-")[2]) for path in self.out.glob("checkpoint-*"))

    def rows(self):
        return read_log(self.out)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    return Runs(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "what, executor",
    [
        slow("raise", "process"), ("data", "thread"), ("nan", "thread"),
        ("raise", "thread"), slow("data", "process"), slow("nan", "process"),
    ],
)  # fmt: skip
def test_errors_stop_the_run_and_keep_saved_files(runs, what, executor):
    with pytest.raises(DataError if what == "data" else WorkerError) as caught:
        runs.train(executor, mischief=f"{what} train3/0")
    first, *lines = str(caught.value).splitlines()
    said = {
        "raise": "ValueError: out of tea",
        "data": r"tea.jsonl:7  the cup is empty \(read by worker [01]\)",
        "nan": ".*not finite.*train3/0.*",
    }[what]
    who = "" if what == "data" else "Worker [01]: "
    assert re.fullmatch(who + said, first)
    if what == "raise":
        assert lines[:2] == ["Examples in progress: train3/0", "Traceback (most recent call last):"]
        assert '    raise ValueError("out of tea")' in lines
    else:  # Errors without a traceback are one line.
        assert lines == []
    assert runs.steps() and (runs.out / "model-last" / "meta.json").exists()


@pytest.mark.slow
def test_workers_that_die_are_noticed_and_the_run_can_resume(runs):
    killed = []

    def kill():
        killed.append(runs.made()[-1]["pid"])
        os.kill(killed[0], signal.SIGKILL)

    killer = runs.await_notes(lambda notes: len(notes) >= 25, kill)
    with pytest.raises(WorkerError) as caught:
        runs.train("process", mischief="slow -")
    killer.join()
    pattern = rf"Worker [01]: its process {killed[0]} was killed by SIGKILL \(too little memory\?\)"
    assert re.fullmatch(pattern, str(caught.value)) and killed[0] != os.getpid()
    newest = runs.steps()[-1]
    assert newest >= 20
    runs.train("thread", training__max_steps=newest + 20)
    assert f"Resuming from {runs.out}/checkpoint-{newest}." in runs.shown
    assert [row["step"] for row in runs.rows()] == list(range(0, newest + 21, 10))


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(runs):
    process = runs.start("process")
    runs.await_steps(process, 5)
    process.kill()
    process.communicate()
    assert left_over(process.pid) == []


@pytest.mark.slow
def test_processes_need_the_file_with_custom_code(tmp_path):
    """The parent registered custom functions itself, without a --code file."""
    load_code(CODE)
    with pytest.raises(WorkerError) as error:
        train(TEXT, output=tmp_path / "out", overrides={"runner.executor": "process"})
    assert re.fullmatch(
        r"Worker [01]: .*'tests.hogwild.v1' is not in 'agents'.*\. A worker knows only .*"
        r"--code \(in Python: train\(\.\.\., code=\"FILE\.py\"\)\), or set "
        r'\[runner\] executor = "thread"\.',
        str(error.value),
    )
    # Nothing prevents another attempt.
    assert not (tmp_path / "out").exists()


def interrupt(runs, executor, number, is_enough, mischief, times=1):
    """Train until a signal. RETURNS: Where the run was saved, and the seconds until it ended."""
    began = []

    def send():
        time.sleep(0.3)  # Other workers continue up to the limit of steps.
        for _ in range(times):
            began.append(time.monotonic())
            os.kill(os.getpid(), number)
            time.sleep(0.5)

    sender = runs.await_notes(is_enough, send)
    with pytest.raises(Interrupted) as caught:
        runs.train(executor, mischief=mischief)
    seconds = time.monotonic() - began[-1]
    sender.join()
    assert caught.value.exit_code == {signal.SIGTERM: 75, signal.SIGINT: 130}[number]
    return str(caught.value), seconds


def has_hung(notes):
    return any("mischief" in note for note in notes)


@pytest.mark.slow
def test_signals_finish_the_steps_in_progress_and_save(runs):
    """Train in a separate process. As from a terminal, the signal also goes to its workers."""
    process = runs.start("process")
    runs.await_steps(process, 13)
    os.killpg(process.pid, signal.SIGTERM)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == 75, stderr
    assert left_over(process.pid) == []
    newest = runs.steps()[-1]
    # One of the first lines is about Adam's settings.
    assert "\n[runner] " in stderr[:100] and "Traceback" not in stderr
    assert f"Saved out/checkpoint-{newest}. Resume with: " in stderr.splitlines()[-1]
    # All steps are saved, including the last.
    assert len(runs.made()) == newest
    runs.train("thread", training__max_steps=40)
    assert runs.rows()[-1]["step"] == len(runs.made()) == 40


@pytest.mark.parametrize(
    "number, executor", [(signal.SIGINT, "thread"), slow(signal.SIGINT, "process")]
)
def test_signals_lose_no_step(runs, executor, number):
    saved, _ = interrupt(runs, executor, number, lambda notes: len(notes) >= 13, "slow -")
    newest = runs.steps()[-1]
    assert saved == str(runs.out / f"checkpoint-{newest}")
    assert len(runs.made()) == newest
    runs.train("thread", training__max_steps=newest + 7)
    assert runs.rows()[-1]["step"] == len(runs.made()) == newest + 7


@pytest.mark.parametrize(
    "number, executor",
    [
        slow(signal.SIGTERM, "process"),
        slow(signal.SIGTERM, "thread"),
        slow(signal.SIGINT, "process"),
    ],
)
def test_signals_end_a_run_whose_worker_hangs(runs, executor, number):
    saved, seconds = interrupt(runs, executor, number, has_hung, "hang train3/0")
    assert saved == str(runs.out / f"checkpoint-{runs.steps()[-1]}")
    assert 2 <= seconds < 60
    assert re.fullmatch(
        r"Worker [01]: no answer 2 seconds after the run should have ended: it hangs, or is very "
        r"slow\. Nothing more can be saved\.",
        runs.shown.splitlines()[-1],
    )
    runs.train("thread", training__max_steps=20)
    assert runs.rows()[-1]["step"] == 20


@pytest.mark.parametrize(
    "number, executor", [slow(signal.SIGTERM, "thread"), slow(signal.SIGINT, "process")]
)
def test_signals_end_an_evaluation_in_which_a_worker_hangs(runs, executor, number):
    saved, seconds = interrupt(runs, executor, number, has_hung, "hang dev3/0")
    assert seconds < 60
    # No step is lost, and the evaluation is repeated when the run resumes.
    assert saved == str(runs.out / "checkpoint-10")
    assert "no answer" not in runs.shown
    assert runs.steps() == [0, 10]
    assert json.loads((runs.out / "model-last" / "meta.json").read_text())["step"] == 10
    assert [row["step"] for row in runs.rows()] == [0]
    runs.train("thread", training__max_steps=20)
    assert [row["step"] for row in runs.rows()] == [0, 10, 20]
    assert len(runs.made()) == 20


@pytest.mark.parametrize("executor", ["thread", slow("process")])
@pytest.mark.slow
def test_signals_a_second_interrupt_waits_for_no_worker(runs, executor):
    saved, seconds = interrupt(runs, executor, signal.SIGINT, has_hung, "hang train3/0", 2)
    assert seconds < 60
    assert saved == str(runs.out / f"checkpoint-{runs.steps()[-1]}")
    assert "no answer" not in runs.shown


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["thread", "process"])
def test_signals_at_any_moment_leave_a_run_that_can_resume(runs, executor):
    rng, codes = random.Random(f"{executor} {SEED}"), []
    began = time.monotonic()
    whole = runs.start(executor, "--training.max_steps", "60", "-o", "whole")
    assert whole.communicate(timeout=60) and whole.returncode == 0
    seconds = time.monotonic() - began
    for number in [signal.SIGTERM, signal.SIGINT, signal.SIGTERM] * TIMES:
        process = runs.start(executor, "--training.max_steps", "60", "--resume")
        time.sleep(rng.uniform(0.05, 1.0) * seconds)
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        stderr = process.communicate(timeout=60)[1]
        # The signal may arrive before any handler is set, while Python starts.
        codes.append(process.returncode)
        assert process.returncode in (0, 75, 130, 143, -number), stderr
        assert "Traceback" not in stderr or "thincdialog/training" not in stderr, stderr
        assert left_over(process.pid) == []
    runs.train(executor, training__max_steps=60)
    assert len(set(codes)) > 1, codes
    assert [row["step"] for row in runs.rows()] == list(range(0, 61, 10))
    assert runs.rows()[-1]["examples"] == 60
