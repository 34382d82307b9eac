"""SIGTERM and SIGINT at any moment of a real process: nothing is lost."""

import json
import os
import signal
import subprocess
import sys

import pytest

from .examples import RANKER
from .resuming import remains, same

CODE = """
import os, signal
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import registry
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.training import whole_folder
from thinc.api import Model

method, at, names = os.environ.get("SIGNAL", "none 0 none").split()
calls = 0

def called(name):
    global calls
    calls += name == method
    if name == method and calls == int(at):
        for number in names.split("+"):
            signal.raise_signal(getattr(signal, number))

class Signalled(RankerAgent):
    def learn(self, train):
        called("learn")
        super().learn(train)

    def train_batch(self, observations):
        called("train_batch")
        super().train_batch(observations)

    def answer(self, observations):
        replies = super().answer(observations)
        called("answer")
        return replies

    def to_disk(self, folder):
        super().to_disk(folder)
        called("to_disk")

@registry.agents("tests.signalled.v1")
def signalled(model: Model, candidates: str = "inline") -> Signalled:
    return Signalled(model, loss=RankingSoftmax(), candidates=candidates)
"""
# 13 steps an epoch, so 4 evaluations, each of 4 batches; then both splits once more.
TEXT = RANKER.replace("thincdialog.Ranker.v1", "tests.signalled.v1").replace(
    "n_samples", "eval_every_epochs = 0.5\nmax_steps = 18\nn_samples"
)


def command(folder, *more, signals="none 0 none"):
    (folder / "config.cfg").write_text(TEXT)
    (folder / "code.py").write_text(CODE)
    arguments = [str(folder / "config.cfg"), "--code", str(folder / "code.py"), *more]
    return subprocess.run(
        [sys.executable, "-m", "thincdialog", "train", *arguments],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "SIGNAL": signals},
        capture_output=True,
        text=True,
        # A shell's background jobs ignore SIGINT, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assert command(folder, "-o", str(folder / "out")).returncode == 0
    return remains(folder / "out")


@pytest.mark.parametrize(
    "moment, step",
    [
        ("train_batch 5 SIGTERM", 5),
        ("train_batch 13 SIGINT", 13),
        ("train_batch 18 SIGTERM+SIGTERM", 18),
        ("answer 2 SIGTERM", 0),
        ("answer 6 SIGINT", 7),
        ("answer 16 SIGTERM", 18),
        ("answer 18 SIGTERM", 18),  # Of the scores at the end.
        ("to_disk 1 SIGTERM", 0),
        ("to_disk 5 SIGINT", 7),
    ],
)
def test_signals_end_the_step_and_tell_how_to_go_on(tmp_path, whole, moment, step):
    out = tmp_path / "out"
    done = command(tmp_path, "-o", str(out), "--resume", signals=moment)
    assert done.returncode == (75 if "SIGTERM" in moment else 130), done.stderr
    line = done.stderr.splitlines()[-1]
    assert f"Saved {out}/checkpoint-{step}. Go on with: python -m thincdialog train " in line
    assert f"--output {out} --resume" in line
    assert "Traceback" not in done.stderr
    words = line[line.index("train ") :].split()[1:]
    again = command(tmp_path, *words[1:])
    assert again.returncode == 0, again.stderr
    same(remains(out), whole)


def test_signals_of_other_threads_and_ignored_ones_are_left_alone(tmp_path):
    (tmp_path / "run.py").write_text(
        f"""
import io, signal, threading
from thincdialog.api import train
from thincdialog.training.interruption import Interruption

signal.signal(signal.SIGINT, signal.SIG_IGN)
before = signal.getsignal(signal.SIGTERM)
with Interruption():
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) != before
assert signal.getsignal(signal.SIGTERM) == before
text = {RANKER!r}
found = []
run = lambda: found.append(train(text, overrides={{"training.max_steps": 2}}, stdout=io.StringIO()))
thread = threading.Thread(target=run)
thread.start()
thread.join()
assert found[0].stopped_because == "max_steps = 2 reached"
"""
    )
    command = [sys.executable, str(tmp_path / "run.py")]
    path = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_signals_while_reading(tmp_path):
    out = tmp_path / "out"
    done = command(tmp_path, "-o", str(out), signals="learn 1 SIGTERM")
    assert done.returncode == 143
    assert "Interrupted before there was anything to save. Go on with: " in done.stderr
    assert command(tmp_path, "-o", str(out), "--resume").returncode == 0


def test_signals_without_a_folder(tmp_path):
    done = command(tmp_path, signals="train_batch 3 SIGINT")
    assert done.returncode == 130
    assert "Interrupted; nothing was saved: give a folder with --output." in done.stderr


PLAIN = """
@registry.optimizers("tests.plain.v1")
def plain(learn_rate: float):
    return Plain()

class Plain:
    # Nothing tells what it knows, so there are no checkpoints.
    learn_rate, averages, grad_clip = 0.1, None, 0.0

    def __call__(self, key, weights, gradient, **given):
        weights -= self.learn_rate * gradient
        return weights, gradient

    def step_schedules(self):
        pass
"""


@pytest.mark.parametrize("name, code", [("SIGTERM", 143), ("SIGINT", 130)])
def test_signals_where_there_are_no_checkpoints(tmp_path, monkeypatch, name, code):
    monkeypatch.setitem(globals(), "CODE", CODE + PLAIN)
    monkeypatch.setitem(globals(), "TEXT", TEXT.replace("Adam.v1", "tests.plain.v1"))
    out = tmp_path / "out"
    done = command(tmp_path, "-o", str(out), signals=f"train_batch 9 {name}")
    assert done.returncode == code, done.stderr
    line = done.stderr.splitlines()[-1]
    said = "to be used as it is: there is no checkpoint to go on from. Begin anew with: "
    assert f"Saved {out}/model-last, {said}python -m thincdialog train " in line
    assert f"--output {out} --force" in line and "--resume" not in line
    assert json.loads((out / "model-last" / "meta.json").read_text())["step"] == 9
    words = line[line.index("train ") :].split()[1:]
    again = command(tmp_path, *words[1:])
    assert again.returncode == 0, again.stderr
    assert json.loads((out / "model-last" / "meta.json").read_text())["step"] == 18


def test_signals_a_second_sigint_stops_at_once(tmp_path, whole):
    out = tmp_path / "out"
    done = command(tmp_path, "-o", str(out), signals="train_batch 9 SIGTERM+SIGINT")
    assert done.returncode == 130 and "Traceback" not in done.stderr
    # Nothing more is saved than the evaluation before it saved.
    assert f"Saved {out}/checkpoint-7. Go on with: " in done.stderr
    assert command(tmp_path, "-o", str(out), "--resume").returncode == 0
    same(remains(out), whole)
