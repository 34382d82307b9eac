"""How the time of training on a GPU is spent, on the stand-in, where a kernel takes 1 ms."""

import io
from itertools import count
from types import SimpleNamespace

import pytest
from thinc.api import Model

from tests.training.examples import RANKER
from tests.training.test_device_counts import cupy  # noqa: F401
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import debug_profile
from thincdialog.inspection.trial import prepared

pytestmark = pytest.mark.gpu
LAZY = RANKER.replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"')
SMALL = {"tasks.coffee.n_train": 60, "system.gpu_id": 0}
STEPS = 4


def profile(**more):
    return debug_profile(LAZY, steps=STEPS, overrides={**SMALL, **more}, stderr=io.StringIO())


def test_device_profile_reports_the_counts_of_the_stand_in(cupy, monkeypatch):  # noqa: F811
    with prepared(LAZY, SMALL, stderr=io.StringIO()) as trial:
        gathered = trial.steps()
        for _ in range(3):
            next(gathered)
            trial.agent.update(trial.optimizer)
        with cupy.counted() as counts:
            next(gathered)
            trial.agent.update(trial.optimizer)
    ticks = count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    monkeypatch.setattr("thincdialog.inspection.device_profile.time", clock)
    functions = Model.__call__, Model.begin_update, Model.predict
    found = profile()
    assert (Model.__call__, Model.begin_update, Model.predict) == functions
    device = found.device
    assert (device.waits, device.to_host) == (0, 0)
    assert 0.95 * counts.launches < device.launches <= counts.launches  # See test_device_calls.
    assert device.from_host == counts.h2d and device.from_host_bytes > 0
    assert {asked.kind for asked in device.lines} == {"from_host"}
    assert all(asked.line.startswith("thincdialog/") for asked in device.lines)
    # All steps took one tick of the clock, and each kernel a millisecond.
    assert found.plain_ms == 1000 / STEPS and device.busy_ms == pytest.approx(counts.launches)
    assert device.idle_share == pytest.approx(1 - counts.launches / found.plain_ms)
    for part in found.parts:
        assert part.own == pytest.approx(part.forward + part.backward)
        assert part.launches - 0.01 < part.own < part.launches + 2.01
    assert sum(part.launches for part in found.parts) == pytest.approx(device.launches)
    times = {part.name: part for part in found.parts}
    assert times["candidate_encoder/linear"].calls == times["context_encoder/linear"].calls == 1
    assert times["bi_encoder"].total > times["bi_encoder"].own


def test_device_profile_names_the_line_that_waits(cupy, monkeypatch):  # noqa: F811
    learn = RankerAgent.learn

    def learn_and_look(self, batch):
        replies = learn(self, batch)
        float(self.parameters.gradients[0])
        return replies

    monkeypatch.setattr(RankerAgent, "learn", learn_and_look)
    device = profile().device
    assert (device.busy_ms, device.idle_share) == (None, None)
    assert (device.waits, device.to_host) == (1, 1)
    first = learn_and_look.__code__.co_firstlineno
    wait = next(each for each in device.lines if each.kind == "waits")
    assert wait.line == f"tests/inspection/test_device_profile.py:{first + 2}" and wait.times == 1
