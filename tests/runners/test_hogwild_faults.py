"""Workers that fail, die or are interrupted: the run ends soon, with one clear line, and
what was saved before stays."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from thincdialog.api import WorkerError, train
from thincdialog.config import load_code

from tests.runners.resuming import FIXED, config
from tests.training.test_hogwild import AGENT, CODE, EXECUTORS

# 15 steps of an example each in an epoch; evaluated and saved at step 10, 20, ...
TEXT = (
    config(FIXED, tasks=1)
    .replace(*AGENT)
    .replace("size = 4", "size = 1")
    .replace("max_epochs = 2.0", "max_epochs = 0\nmax_steps = 300")
    .replace("eval_every_epochs = 0.5", "eval_every_epochs = 0\neval_every_steps = 10")
    .replace("checkpoint_every_steps = 2", "checkpoint_every_steps = 10")
)


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


class Command:
    """Starts ``train`` in a process of its own, and looks at what is left of it."""

    def __init__(self, folder: Path):
        self.folder, self.out = folder, folder / "out"
        (folder / "config.cfg").write_text(TEXT)

    def start(self, *more: str, mischief: str = "", executor: str = "process"):
        arguments = ["config.cfg", "-o", "out", "--hogwild.workers", "2", *more]
        arguments += ["--hogwild.executor", executor, "--code", str(CODE)]
        environment = {
            **os.environ,
            "PYTHONPATH": ":".join(sys.path),
            "HOGWILD_NOTES": str(self.folder / "notes"),
            "HOGWILD_MISCHIEF": mischief,
            "HOGWILD_END": "2",
        }
        return subprocess.Popen(
            [sys.executable, "-m", "thincdialog", "train", *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A shell's background jobs ignore SIGINT, and so would this one.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def finish(self, process, code: int) -> str:
        stderr = process.communicate(timeout=120)[1]
        assert process.returncode == code, stderr
        assert self.left_over(process.pid) == []
        return stderr

    def run(self, code: int, *more: str, **options) -> str:
        """What stderr shows."""
        return self.finish(self.start(*more, **options), code)

    def left_over(self, session: int, seconds: float = 5.0):
        """Processes of a session that are still there after so long."""
        until = time.monotonic() + seconds
        while True:
            listed = subprocess.run(
                ["ps", "-s", str(session), "-o", "pid=,stat="], capture_output=True, text=True
            )
            pids = [line.split()[0] for line in listed.stdout.splitlines() if " Z" not in line]
            if not pids or time.monotonic() > until:
                return pids
            time.sleep(0.05)

    def notes(self):
        path = self.folder / "notes"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def await_steps(self, process, n: int) -> dict:
        """The last note, as soon as there are so many of steps."""
        while sum("step" in note for note in self.notes()) < n:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        return self.notes()[-1]

    def start_hanging(self, executor: str, where: str = "train3/0"):
        """A run one of whose workers hangs."""
        process = self.start(mischief=f"hang {where}", executor=executor)
        while not any("mischief" in note for note in self.notes()):
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        time.sleep(0.5)  # The others go on till there is no room for more.
        return process

    def steps(self):
        return sorted(int(path.name.rpartition("-")[2]) for path in self.out.glob("checkpoint-*"))

    def rows(self):
        return [json.loads(line) for line in (self.out / "log.jsonl").read_text().splitlines()]


@pytest.fixture
def command(tmp_path):
    return Command(tmp_path)


# --- errors ---------------------------------------------------------------------------


@pytest.mark.parametrize("executor", [slow("thread"), "process"])
def test_errors_stop_the_run_with_traceback_and_examples(command, executor):
    stderr = command.run(1, mischief="raise train3/0", executor=executor)
    assert re.search(r"✘ Worker [01]: ValueError: out of tea\n", stderr)
    assert "Examples at hand: train3/0\n" in stderr
    assert "Traceback (most recent call last):" in stderr
    assert 'raise ValueError("out of tea")' in stderr
    assert stderr.count("out of tea") == 3  # The line, and in the traceback.
    assert stderr.count("Traceback") == 1


@pytest.mark.parametrize(
    "what, executor", [("data", "process"), ("nan", "thread"), slow("data", "thread"),
                       slow("nan", "process")],
)  # fmt: skip
def test_errors_that_a_user_can_mend_are_one_line(command, executor, what):
    line = {
        "data": r"✘ Worker [01]: tea.jsonl:7  the cup is empty",
        "nan": r"✘ Worker [01]: .*not finite.*train3/0.*",
    }[what]
    stderr = command.run(1, mischief=f"{what} train3/0", executor=executor)
    assert re.fullmatch(line, stderr.strip().splitlines()[-1]), stderr
    assert "Traceback" not in stderr
    # What was saved before is kept.
    assert command.steps() and (command.out / "model-last" / "meta.json").exists()


def test_workers_that_die_are_noticed_and_the_run_goes_on_later(command):
    process = command.start()
    victim = command.await_steps(process, 25)["pid"]
    assert victim != process.pid
    os.kill(victim, signal.SIGKILL)
    started = time.monotonic()
    stderr = command.finish(process, 1)
    assert time.monotonic() < started + 10
    said = stderr.strip().splitlines()[-1]
    pattern = rf"✘ Worker [01]: its process {victim} was killed by SIGKILL \(too little memory\?\)"
    assert re.fullmatch(pattern, said), stderr
    assert "Traceback" not in stderr and "leaked" not in stderr
    newest = command.steps()[-1]
    assert newest >= 20
    stderr = command.run(0, "--resume", "--training.max_steps", str(newest + 20))
    assert f"Going on from out/checkpoint-{newest}." in stderr
    assert [row["step"] for row in command.rows()] == list(range(0, newest + 21, 10))


def test_workers_end_with_a_parent_that_is_killed(command):
    process = command.start()
    command.await_steps(process, 5)
    process.kill()
    process.communicate()
    assert command.left_over(process.pid) == []


@pytest.mark.parametrize(
    "number, code, executor",
    [
        (signal.SIGTERM, 75, "process"),
        (signal.SIGINT, 130, "thread"),
        slow(signal.SIGTERM, 75, "thread"),
        slow(signal.SIGINT, 130, "process"),
    ],
)
def test_signals_end_the_steps_under_way_and_save(command, executor, number, code):
    process = command.start(mischief="slow -", executor=executor)
    command.await_steps(process, 13)
    os.killpg(process.pid, number)  # As from a terminal: the workers get it, too.
    stderr = command.finish(process, code)
    newest = command.steps()[-1]
    assert f"Saved out/checkpoint-{newest}. Go on with: " in stderr.splitlines()[-1]
    assert "Traceback" not in stderr
    made = [note["step"] for note in command.notes()]
    assert len(made) == newest  # What was learnt is saved, to the last step.
    assert command.run(0, "--resume", "--training.max_steps", "40", executor=executor)
    assert command.rows()[-1]["step"] == 40
    assert len(command.notes()) == 40


@pytest.mark.parametrize(
    "number, code, executor",
    [
        (signal.SIGTERM, 75, "process"),
        slow(signal.SIGINT, 130, "process"),
        slow(signal.SIGTERM, 75, "thread"),
        slow(signal.SIGINT, 130, "thread"),
    ],
)
def test_signals_end_a_run_whose_worker_hangs(command, executor, number, code):
    process = command.start_hanging(executor)
    newest = command.steps()[-1]
    os.killpg(process.pid, number)
    began = time.monotonic()
    stderr = command.finish(process, code)
    assert 2 <= time.monotonic() - began < 12
    *_, late, saved = stderr.splitlines()
    assert re.fullmatch(
        r"Worker [01]: no answer 2 seconds after the run was to end: it hangs, or is very slow\. "
        r"Nothing more can be saved\.",
        late,
    )
    assert f"Saved out/checkpoint-{newest}. Go on with: " in saved
    assert "Traceback" not in stderr
    command.run(0, "--resume", "--training.max_steps", "20", executor=executor)
    assert command.rows()[-1]["step"] == 20


@pytest.mark.parametrize(
    "number, code, executor",
    [
        (signal.SIGTERM, 75, "thread"),
        slow(signal.SIGINT, 130, "thread"),
        slow(signal.SIGTERM, 75, "process"),
    ],
)
def test_signals_end_an_evaluation_in_which_a_worker_hangs(command, executor, number, code):
    process = command.start_hanging(executor, where="dev3/0")
    assert command.steps() == [0]
    os.killpg(process.pid, number)
    began = time.monotonic()
    stderr = command.finish(process, code)
    assert time.monotonic() - began < 12  # Schedulers kill 30 seconds after SIGTERM.
    # The evaluation is left for when the run goes on, and no step is lost.
    assert "Saved out/checkpoint-10. Go on with: " in stderr.splitlines()[-1]
    assert "no answer" not in stderr and "Traceback" not in stderr
    assert command.steps() == [0, 10]
    assert json.loads((command.out / "model-last" / "meta.json").read_text())["step"] == 10
    assert [row["step"] for row in command.rows()] == [0]
    command.run(0, "--resume", "--training.max_steps", "20", executor=executor)
    assert [row["step"] for row in command.rows()] == [0, 10, 20]
    assert len([note for note in command.notes() if "step" in note]) == 20


@pytest.mark.parametrize("executor", ["thread", slow("process")])
def test_signals_a_second_interrupt_waits_for_nobody(command, executor):
    process = command.start_hanging(executor)
    newest = command.steps()[-1]
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    began = time.monotonic()
    stderr = command.finish(process, 130)
    assert time.monotonic() - began < 6
    assert f"Saved out/checkpoint-{newest}. Go on with: " in stderr.splitlines()[-1]
    assert "no answer" not in stderr and "Traceback" not in stderr


def test_processes_need_to_know_the_users_code(tmp_path):
    """What the parent has registered by itself, and gives no file for."""
    load_code(CODE)
    changes = {"hogwild.workers": 2, "hogwild.executor": "process"}
    with pytest.raises(WorkerError) as error:
        train(TEXT, output=tmp_path / "out", overrides=changes)
    assert re.fullmatch(
        r"Worker [01]: .*'tests.hogwild.v1' is not in 'agents'\. A process knows only .*"
        r"--code \(in Python: train\(\.\.\., code=\"FILE\.py\"\)\), or set "
        r'\[hogwild\] executor = "thread"\.',
        str(error.value),
    )
    # Nothing is in the way of the next try.
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("executor", EXECUTORS)
def test_signals_at_any_moment_leave_a_run_that_goes_on(command, executor):
    rng = random.Random(executor)
    limits = ["--training.max_steps", "60", "--resume"]
    codes = []
    for _ in range(12):
        process = command.start(*limits, mischief="slow -", executor=executor)
        time.sleep(rng.uniform(0.3, 5.0))
        number = rng.choice([signal.SIGTERM, signal.SIGINT])
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        stderr = process.communicate(timeout=60)[1]
        # Before anything is set up, Python itself may be hit.
        codes.append(process.returncode)
        assert process.returncode in (0, 75, 130, 143, -number), stderr
        assert "Traceback" not in stderr or "thincdialog/training" not in stderr, stderr
        assert command.left_over(process.pid) == []
    command.run(0, *limits, executor=executor)
    assert len(set(codes)) > 1, codes
    assert [row["step"] for row in command.rows()] == list(range(0, 61, 10))
    assert command.rows()[-1]["examples"] == 60
