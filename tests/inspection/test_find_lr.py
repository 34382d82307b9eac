"""The learning-rate range test, on the generated task."""

import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.examples import RANKER, quietly_train
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import (
    ConfigError,
    DialogError,
    Experiment,
    find_lr,
    load_config,
    registry,
)
from thincdialog.inspection.find_lr import judge

SIZES = {
    "tasks.coffee.n_train": 300,
    "agent.candidates": "batch",
    "agent.model.encoder.width": 32,
    "agent.model.encoder.dropout": 0.0,
    "training.max_epochs": 3.0,
    "training.n_samples": 0,
}
LAZY = {
    "training.optimizer.@optimizers": "thincdialog.LazyAdam.v1",
    "tasks.coffee.n_train": 1000,
}


def found_with(**options):
    options.setdefault("overrides", SIZES)
    return find_lr(RANKER, stderr=io.StringIO(), **options)


def dev_loss(learn_rate, overrides):
    changes = {**overrides, "training.optimizer.learn_rate": learn_rate}
    return quietly_train(RANKER, **changes)[0].scores["dev"]["loss"]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [{}, pytest.param(LAZY, marks=pytest.mark.slow)])
def test_find_lr_suggestion_trains_better_than_far_smaller_and_larger(optimizer):
    overrides = {**SIZES, **optimizer}
    found = found_with(overrides=overrides)
    assert found.suggestion is not None and 1e-4 < found.suggestion < 0.1
    reached = [dev_loss(found.suggestion * factor, overrides) for factor in (0.01, 1.0, 100.0)]
    assert reached[1] < min(reached[0], reached[2]) - 0.1


@pytest.mark.parametrize("size, n_left", [(60, 21), (67, 0)])
def test_find_lr_leaves_the_rest_of_an_epoch_out(size, n_left):
    """The remaining examples have few candidates, so they are easy with any rate."""
    trained, given_up = [], []

    class Counting(RankerAgent):
        def update(self, optimizer):
            trained.append((self.n_gathered, optimizer.learn_rate))
            return super().update(optimizer)

        def give_up(self):
            given_up.append(self.n_gathered)
            super().give_up()

    registry.agents("test_find_lr.Counting.v1", func=Counting)
    assert Experiment.from_config(RANKER).training_split().n_examples % size == n_left
    changes = {"agent.@agents": "test_find_lr.Counting.v1", "world.batcher.size": size}
    found = found_with(steps=30, overrides={**SIZES, "tasks.coffee.n_train": 34, **changes})
    assert trained == [(size, rate) for rate in found.learn_rates] and len(found.losses) == 30
    # 201 examples are 3 steps of 60 or of 67 per epoch.
    assert given_up == [n_left] * 9 * bool(n_left)


def test_find_lr_rates_rise_exponentially_and_losses_are_those_of_training():
    found = found_with(steps=20, start=1e-5, end=1e-1)
    assert len(found.learn_rates) == len(found.losses) == len(found.smoothed) == 20
    assert found.learn_rates[0] == pytest.approx(1e-5)
    assert found.learn_rates[-1] == pytest.approx(1e-1)
    ratios = np.divide(found.learn_rates[1:], found.learn_rates[:-1])
    np.testing.assert_allclose(ratios, ratios[0])
    again = found_with(steps=20, start=1e-5, end=1e-1)
    assert again == found
    # The first batch and weights are the same for all rates, and as in training.
    other = found_with(steps=20, start=1e-8, end=1e-7)
    assert other.losses[0] == found.losses[0]
    losses = []

    @registry.callbacks("test_find_lr.Losses.v1")
    def losses_of_rows():
        return lambda info, agent: losses.append(info["loss_per_example"])

    text = RANKER + '\n[training.callbacks.it]\n@callbacks = "test_find_lr.Losses.v1"\n'
    one_step = {**SIZES, "training.max_epochs": 0.0, "training.max_steps": 1}
    quietly_train(text, **one_step)
    assert losses[-1] == found.losses[0]


@pytest.mark.slow
def test_find_lr_replaces_a_schedule_and_accumulates_gradients():
    number = found_with(steps=15)
    block = load_config(RANKER, SIZES).config
    block["training"]["optimizer"]["learn_rate"] = {
        "@schedules": "warmup_linear.v1",
        "initial_rate": 7.0,
        "warmup_steps": 3,
        "total_steps": 9,
    }
    schedule = find_lr(block, steps=15, stderr=io.StringIO())
    assert schedule == number
    sizes = {"world.batcher.size": 8, "training.accumulate_gradient": 2}
    still = {**SIZES, "agent.candidates": "inline"}
    halves = found_with(steps=15, overrides={**still, **sizes})
    np.testing.assert_allclose(
        halves.losses, found_with(steps=15, overrides=still).losses, rtol=1e-4
    )


def test_find_lr_stops_when_the_loss_runs_off():
    wild = {
        **SIZES,
        "training.optimizer.grad_clip": 0.0,
        "agent.model.normalise": False,
        "training.optimizer.@optimizers": "SGD.v1",
    }
    found = found_with(overrides=wild, start=1e-4, end=1e30)
    assert found.diverged and len(found.losses) < 100
    assert found.stopped_because.startswith("the loss diverged at ")
    assert found.suggestion is None or found.suggestion < found.learn_rates[-1] / 10


def test_find_lr_refuses_settings_without_a_curve():
    for options in ({"start": 0.0}, {"start": 1.0, "end": 0.1}, {"end": math.inf}):
        with pytest.raises(
            DialogError, match="start = .*, end = .*: rates should rise from above 0"
        ):
            found_with(**options)
    with pytest.raises(DialogError, match="steps = 3, expected 10 or more"):
        found_with(steps=3)
    weightless = RANKER[: RANKER.index("[tokenizer]")] + (
        '[agent]\n@agents = "thincdialog.MostFrequent.v1"\n'
    )
    with pytest.raises(ConfigError, match=r"\[agent\] .*has no weights to train"):
        find_lr(weightless)


def test_find_lr_judges_curves():
    rates = np.geomspace(1e-6, 1.0, 100).tolist()
    noise = np.random.default_rng(0).normal(0, 0.05, 100)
    falls_then_rises = [
        4 - 2 / (1 + (1e-3 / rate) ** 2) + max(0, 2 * math.log10(rate / 0.02)) for rate in rates
    ]
    found = judge(rates, (falls_then_rises + noise).tolist(), False, 100)
    assert 3e-3 < found.turn < 3e-2 and "upwards" in found.why
    assert found.suggestion == pytest.approx(min(found.fallen, found.turn / 10), rel=0.05)
    assert 1e-3 < found.fallen < 2e-3  # It is 1.53e-3 without noise.
    # A curve that falls late rises soon afterwards.
    falls_late = [
        4 - 2 / (1 + (0.01 / rate) ** 4) + max(0, 4 * math.log10(rate / 0.03)) for rate in rates
    ]
    late = judge(rates, (falls_late + noise).tolist(), False, 100)
    assert late.turn / 10 < late.fallen
    assert late.suggestion == pytest.approx(late.turn / 10, rel=0.05)
    # Noise moves it by one step of the rate: these are 15 % apart.
    only_falls = [4 - 2 / (1 + (1e-3 / rate) ** 2) for rate in rates]
    suggestions = [
        judge(
            rates, list(only_falls + np.random.default_rng(seed).normal(0, 0.1, 100)), False, 100
        ).suggestion
        for seed in range(20)
    ]
    assert max(suggestions) < 1.2 * min(suggestions)
    found = judge(rates, (np.full(100, 4.0) + noise).tolist(), False, 100)
    assert found.suggestion is None and "did not fall" in found.why
    falls = [4 - 3 / (1 + (1 / rate) ** 2) for rate in rates]
    found = judge(rates, (falls + noise / 5).tolist(), False, 100)
    assert found.turn is None and found.suggestion > 0.1 and "--end" in found.why
    found = judge(rates[:1], [3.0], True, 100)
    assert found.suggestion is None and "--start" in found.why


@given(
    st.lists(st.floats(0.0, 1e30), min_size=1, max_size=60),
    st.sampled_from([list, sorted, lambda losses: sorted(losses, reverse=True)]),
    st.booleans(),
)
def test_find_lr_judges_any_curve(losses, in_order, diverged):
    """Some curves only rise: weight decay alone can cause that."""
    losses = in_order(losses)
    rates = np.geomspace(1e-6, 1.0, 60).tolist()[: len(losses)]
    found = judge(rates, losses, diverged, 60)
    assert found.suggestion is None or 0.0 < found.suggestion <= 1.0
    assert len(found.smoothed) == len(losses) and found.why
