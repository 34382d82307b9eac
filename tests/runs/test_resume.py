"""A run that is interrupted and goes on leaves the same bits as one that is not."""

import random
import signal

import pytest

from tests.runners.resuming import CONFIGS, NOTES, Crash, remains, run, same
from thincdialog.api import ExampleMetric, SumMetric, TrainingError, registry
from thincdialog.training.interruption import Interrupted


@pytest.fixture(autouse=True)
def fresh_notes():
    NOTES.clear()
    yield
    NOTES.clear()


def whole(text, tmp_path, first_draws=0):
    random.seed(first_draws)
    run(text, tmp_path / "whole")
    seen = dict(NOTES.seen)
    n_steps = max(int(name.split("/")[0]) for name in seen)
    NOTES.clear()
    return remains(tmp_path / "whole"), seen, n_steps


@pytest.mark.parametrize("name", CONFIGS)
def test_resume_after_crashes_gives_the_same_bits(tmp_path, name):
    text = CONFIGS[name]
    expected, seen, n_steps = whole(text, tmp_path)
    for step in (1, n_steps // 2 + 1, n_steps):
        NOTES.crash_at(step)
        with pytest.raises(Crash):
            run(text, tmp_path / "out", resume=True)
    NOTES.before = lambda step: None
    assert "Going on from" in run(text, tmp_path / "out", resume=True)
    same(remains(tmp_path / "out"), expected)
    assert NOTES.seen == seen


@pytest.mark.parametrize(
    "name, number",
    [
        ("columns, Words, LazyAdam, averages", signal.SIGTERM),
        ("dynamic, Batchsort, a stream", signal.SIGINT),
    ],
)
def test_resume_after_a_signal_at_every_step_gives_the_same_bits(tmp_path, name, number):
    text = CONFIGS[name].replace("checkpoint_every_steps = 2\n", "")
    expected, seen, n_steps = whole(text, tmp_path)
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    for step in range(1, n_steps + 1):

        def interrupt(at, step=step):
            assert at == step, "a step was lost"
            signal.raise_signal(number)

        NOTES.before = interrupt
        with pytest.raises(Interrupted) as caught:
            run(text, tmp_path / "out", resume=True)
        assert str(caught.value) == str(tmp_path / "out" / f"checkpoint-{step}")
        assert caught.value.exit_code == {signal.SIGTERM: 75, signal.SIGINT: 130}[number]
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    NOTES.before = lambda step: None
    run(text, tmp_path / "out", resume=True)
    same(remains(tmp_path / "out"), expected)
    assert NOTES.seen == seen


@registry.metrics("tests.drawing.v1")
def drawing():
    return Drawing()


class Drawing(ExampleMetric):
    """A metric of a user's that draws from the generator that everybody shares, and
    interrupts the third evaluation."""

    moment = -1

    def __init__(self):
        self.reset()

    def add(self, labels, reply):
        self.drawn += random.random()
        Drawing.moment -= 1
        if Drawing.moment == 0:
            signal.raise_signal(signal.SIGTERM)

    def report(self):
        return {"drawn_sum": SumMetric(self.drawn)}

    def reset(self):
        self.drawn = 0.0


def test_resume_after_a_signal_within_an_evaluation_that_draws(tmp_path):
    text = CONFIGS["columns, Fixed, Adam, accumulated"]
    metrics = ("tests.drawing.v1", "thincdialog.Ranking.v1")
    for place, name in enumerate(metrics):
        section = f'[evaluation.metrics.m{place}]\n@metrics = "{name}"\n\n[training]'
        text = text.replace("[training]", section, 1)
    expected, seen, _ = whole(text, tmp_path, first_draws=1)
    n_dev = int(expected["rows"][0]["scores"]["examples"])
    random.seed(1)
    Drawing.moment = 2 * n_dev + 2
    with pytest.raises(Interrupted):
        run(text, tmp_path / "out")
    random.seed(2)
    run(text, tmp_path / "out", resume=True)
    same(remains(tmp_path / "out"), expected)
    assert NOTES.seen == seen


@registry.callbacks("tests.unsavable.v1")
def unsavable():
    return Unsavable()


class Unsavable:
    def __call__(self, info, agent):
        return False

    def state(self):
        return {"seen": {1, 2}}


def test_resume_what_is_no_json_is_refused_by_name(tmp_path):
    more = '\n[training.callbacks.mine]\n@callbacks = "tests.unsavable.v1"\n'
    text = CONFIGS["columns, Fixed, Adam, accumulated"] + more
    with pytest.raises(TrainingError, match="state of callback 'mine' cannot be saved: set is no"):
        run(text, tmp_path / "out")
