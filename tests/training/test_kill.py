"""A real training process is killed, and goes on: in the end nobody can tell."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from .examples import RANKER
from .resuming import remains, same

CODE = """
import json
import time
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import registry
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.messages import column
from thinc.api import Model

class Noting(RankerAgent):
    def seed(self, seed, step, microbatch):
        self.counters.step = step
        super().seed(seed, step, microbatch)

    def train_batch(self, observations):
        with open(PATH, "a") as file:
            file.write(json.dumps([self.counters.step, *column(observations, "id")]) + "\\n")
        if self.counters.step >= HOLD_AT:
            time.sleep(600)
        super().train_batch(observations)

@registry.agents("tests.noting_file.v1")
def noting(model: Model, candidates: str = "inline") -> Noting:
    return Noting(model, loss=RankingSoftmax(), candidates=candidates)
"""
CONFIG = (
    RANKER.replace("thincdialog.Ranker.v1", "tests.noting_file.v1")
    .replace("[tasks.coffee.mutators.*.flatten]\n", "")
    .replace('@mutators = "thincdialog.Flatten.v1"\n', "")
    .replace("Fixed.v1", "Words.v1")
    .replace("size = 16", "budget = 600\nbuffer = 4")
    .replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"\nuse_averages = true\naverage_every = 2')
    .replace("max_epochs = 2.0", "max_epochs = 2.0\neval_every_steps = 7\nEVERY")
)


class Runs:
    """Starts the processes."""

    def __init__(self, folder, every, **settings):
        self.folder = folder
        text = CONFIG.replace("EVERY", f"checkpoint_every_steps = {every}")
        for name, value in settings.items():
            text = text.replace(f"{name} = ", f"{name} = {value} # ", 1)
        (folder / "config.cfg").write_text(
            "\n".join(line.split(" #")[0] for line in text.split("\n"))
        )

    def start(self, name, hold_at=None):
        """A process that trains, or goes on, in a folder; it holds in a step until killed."""
        code = self.folder / f"{name}.py"
        text = CODE.replace("PATH", repr(str(self.folder / f"{name}.ids")))
        code.write_text(text.replace("HOLD_AT", str(hold_at or 10**9)))
        arguments = [str(self.folder / "config.cfg"), "-o", str(self.folder / name)]
        return subprocess.Popen(
            [sys.executable, "-m", "thincdialog", "train", *arguments, "--resume", "-c", str(code)],
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, name):
        process = self.start(name)
        stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr
        return stderr

    def ids(self, name):
        """Step to the ids that it learnt from; the same ones each time that it did."""
        found = {}
        lines = (self.folder / f"{name}.ids").read_text().splitlines(keepends=True)
        for line in lines:
            if line.endswith("}\n") or line.endswith("]\n"):
                step, *ids = json.loads(line)
                assert found.setdefault(step, ids) == ids
        return found

    def compare(self):
        same(remains(self.folder / "killed"), remains(self.folder / "whole"))
        assert self.ids("killed") == self.ids("whole")


def last_step(path):
    """The step written last; a line that is being written does not count."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return json.loads(lines[-1])[0] if lines else 0


def wait_for_a_moment(process, runs, until, rng):
    """Some moment in or after a step, or of the saving that follows it."""
    path, folder = runs.folder / "killed.ids", runs.folder / "killed"
    while last_step(path) < until and process.poll() is None:
        time.sleep(0.0005)
    saving, start = rng.random() < 0.5, time.monotonic()
    time.sleep(rng.uniform(0.0, 0.03))
    while saving and time.monotonic() < start + 2.0 and process.poll() is None:
        if any(path.name.startswith(".") for path in folder.glob(".*.*")):
            return
        time.sleep(0.0005)


def kill(runs, n_kills, seed):
    """Kills the run so many times, at moments spread over all of it."""
    rng = random.Random(seed)
    n_saving = 0
    last = max(runs.ids("whole"))
    for n_left in range(n_kills, 0, -1):
        done = last_step(runs.folder / "killed.ids")
        process = runs.start("killed", hold_at=last)
        until = min(last, done + rng.randint(1, max(1, 2 * (last - done) // n_left)))
        wait_for_a_moment(process, runs, until, rng)
        process.send_signal(signal.SIGKILL)
        stderr = process.communicate()[1]
        assert process.returncode == -signal.SIGKILL, stderr
        n_saving += any((runs.folder / "killed").glob(".*.*"))
    return n_saving


def test_kill_twice_leaves_the_same_bits(tmp_path):
    runs = Runs(tmp_path, every=2, n_train=60)
    runs.finish("whole")
    kill(runs, 2, seed=1)
    runs.finish("killed")
    runs.compare()


@pytest.mark.slow
def test_kill_at_20_moments_leaves_the_same_bits(tmp_path):
    runs = Runs(tmp_path, every=1, n_train=300, max_epochs=10.0)
    runs.finish("whole")
    assert kill(runs, 20, seed=2) > 3, "some kills came while something was saved"
    assert "Going on from" in runs.finish("killed")
    runs.compare()
