"""How the time of training is spent, on the generated task."""

import io
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from thinc.api import Model

from tests.training.examples import RANKER
from thincdialog.api import DialogError, debug_profile
from thincdialog.inspection.debug_profile import PARTS, WARM_UP, measure
from thincdialog.inspection.stopwatch import Spent, Stopwatch
from thincdialog.inspection.trial import prepared

STEPS = 4


def profile(**overrides):
    changes = {name.replace("__", "."): value for name, value in overrides.items()}
    changes = {"tasks.coffee.n_train": 60, **changes}
    return debug_profile(RANKER, steps=STEPS, overrides=changes, stderr=io.StringIO())


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock by one that advances a second per reading, so that results do not depend on
    load."""
    ticks = count(0.0)
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    for module in ("debug_profile", "stopwatch"):
        monkeypatch.setattr(f"thincdialog.inspection.{module}.time", clock)
    return ticks


def test_profile_accounts_for_the_whole_step(clock):
    found = profile()
    assert sum(part.share for part in found.parts) == pytest.approx(1.0)
    # All but the time before the data, between the data and the optimizer, and after the optimizer.
    assert sum(part.own for part in found.parts) == pytest.approx(found.step_ms - 3000)
    assert [part.own for part in found.parts] == sorted((p.own for p in found.parts), reverse=True)
    times = {part.name: part for part in found.parts}
    assert set(PARTS) < set(times)
    assert found.examples_per_step == 16
    # The embedding table is one node, read once for contexts and once for replies.
    assert times["candidate_encoder+context_encoder/bag_embed"].calls == 2
    assert times["context_encoder/linear"].calls == times["bi_encoder"].calls == 1
    assert all(part.forward > 0 and part.total >= part.own for part in found.parts)
    encoder = times["bi_encoder"]
    inside = [p.own for p in found.parts if p.name not in PARTS and p is not encoder]
    assert encoder.total == pytest.approx(encoder.own + sum(inside), rel=0.01)


def test_profile_shared_encoder_is_one_node_for_both():
    found = profile(agent__model__share="all", agent__model__normalise=False)
    calls = {part.name: part.calls for part in found.parts}
    assert calls["candidate_encoder+context_encoder/linear"] == 2


def test_profile_changes_no_results():
    weights = []
    for is_measured in (True, False):
        overrides = {"tasks.coffee.n_train": 60, "agent.model.encoder.dropout": 0.3}
        with prepared(RANKER, overrides, stderr=io.StringIO()) as trial:
            functions = [node._func for node in trial.agent.model.walk()]
            if is_measured:
                measure(trial, STEPS)
                assert [node._func for node in trial.agent.model.walk()] == functions
                assert "learn" not in vars(trial.agent)
                assert "contexts" not in vars(trial.agent.text)
            else:
                gathered = trial.steps()
                for _ in range(WARM_UP + 2 * STEPS):
                    next(gathered)
                    trial.agent.update(trial.optimizer)
            weights.append(trial.agent.parameters.values.copy())
    np.testing.assert_array_equal(*weights)


def test_profile_reports_the_cost_of_evaluation():
    found = profile(tasks__coffee__n_dev=30, training__eval_every_steps=10)
    assert found.eval_ms_per_example > 0 and 0 < found.eval_share < 1
    assert 100 < found.eval_examples < 200
    rarely = profile(tasks__coffee__n_dev=30, training__eval_every_steps=10000)
    for one, between in ((found, 10), (rarely, 10000)):
        evaluating = one.eval_ms_per_example * one.eval_examples
        learning = one.plain_ms * between
        assert one.eval_share == pytest.approx(evaluating / (evaluating + learning))


def test_profile_refuses_no_steps():
    with pytest.raises(DialogError, match="steps = 0, expected 1 or more"):
        debug_profile(RANKER, steps=0)


def test_stopwatch_separates_own_time_from_that_of_calls_inside(clock):
    watch = Stopwatch()

    def inner():
        next(clock)

    def outer():
        next(clock)
        watch.time("inner", inner)
        watch.time("inner", inner)

    watch.time("outer", outer)
    # Each reading of the clock takes a second: one inside the call, one for its end.
    assert watch.spent == {"inner": Spent(2, 4.0, 4.0), "outer": Spent(1, 8.0, 4.0)}


def test_stopwatch_restores_a_node_that_fails():
    def fails(model, X, is_train):
        raise ValueError("no")

    watch, node = Stopwatch(), Model("fails", fails)
    with pytest.raises(ValueError), watch.timing_nodes(node, ["a"]):
        node(1, is_train=True)
    assert node._func is fails and watch._running == [] and watch.spent["a"].calls == 1
