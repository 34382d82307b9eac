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
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import registry
from thincdialog.losses.ranking_softmax import configure_ranking_softmax
from thincdialog.messages import column
from thinc.api import Model

class Noting(RankerAgent):
    def seed(self, seed, step, microbatch):
        self.counters.step = step
        super().seed(seed, step, microbatch)

    def train_batch(self, observations):
        with open(PATH, "a") as file:
            file.write(json.dumps([self.counters.step, *column(observations, "id")]) + "\\n")
        super().train_batch(observations)

@registry.agents("tests.noting_file.v1")
def noting(model: Model, candidates: str = "inline") -> Noting:
    return Noting(model, loss=configure_ranking_softmax(), candidates=candidates)
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

    def start(self, name):
        """A process that trains, or goes on, in a folder."""
        code = self.folder / f"{name}.py"
        code.write_text(CODE.replace("PATH", repr(str(self.folder / f"{name}.ids"))))
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


def wait_for_a_moment(process, folder, rng):
    """Some moment of its training, or of its saving."""
    while line := process.stderr.readline():
        if "Going on" in line or "afresh" in line:
            break
    until = time.monotonic() + rng.uniform(0.0, 1.5)
    saving = rng.random() < 0.5
    while process.poll() is None:
        if time.monotonic() > until:
            if not saving or any(path.name.startswith(".") for path in folder.glob(".*.*")):
                return
        time.sleep(0.0005)


def kill(runs, n_kills, seed):
    rng = random.Random(seed)
    n_saving = 0
    for _ in range(n_kills):
        process = runs.start("killed")
        wait_for_a_moment(process, runs.folder / "killed", rng)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "it ended before it could be killed"
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
