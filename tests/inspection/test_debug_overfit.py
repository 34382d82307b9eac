"""Memorising one batch, on the generated task."""

import io

import pytest

from tests.agents.topics import CONFIG as MULTI_LABEL
from tests.agents.topics import write_topics
from tests.training.examples import CLASSIFIER, RANKER
from thincdialog.api import ConfigError, DataError, DialogError, IterableTeacher, registry
from thincdialog.inspection.debug_overfit import debug_overfit

INTENT = (
    """
[tasks.it]
@teachers = "test_overfit.rows.v1"
labels = ["x", "y"]
"""
    + f"{CLASSIFIER}width = 8\ntoken_dropout = 0.5\n"
)
SMALL = {"tasks.coffee.n_train": 20}


@registry.teachers("test_overfit.rows.v1")
def rows(labels: list, n_same: int = 0):
    """Make texts of one word each; those with numbers up to `n_same` are the same text."""
    texts = [f"word{max(number, n_same)}" for number in range(24)]
    shown = [(text, labels[number % len(labels)]) for number, text in enumerate(texts)]
    return IterableTeacher({"train": shown})


def overfit(config=RANKER, steps=200, **overrides):
    changes = {name.replace("__", "."): value for name, value in overrides.items()}
    if config is RANKER:
        changes = {**SMALL, **changes}
    return debug_overfit(config, steps=steps, overrides=changes, stderr=io.StringIO())


@pytest.mark.parametrize("candidates", ["batch", "batch_all", "inline", "fixed"])
def test_overfit_learns_a_batch_against_any_candidates(candidates):
    found = overfit(agent__candidates=candidates)
    assert found.is_memorised and found.examples == 16 and found.labels > 5
    assert found.first_score < 0.5 and found.last_score >= 0.95
    assert found.losses[-1] < 0.1 * found.losses[0]
    assert found.without_gradient == [] and found.hints == []


def test_overfit_reaches_the_best_score_if_repeats_are_blocked():
    labels = [f"word{number}" for number in range(24)]  # The same words as the texts.
    config = "[tokenizer]".join(
        (INTENT.partition("[tokenizer]")[0], RANKER.split("[tokenizer]")[1])
    )
    found = overfit(config, tasks__it__labels=labels, agent__candidates="batch",
                    agent__block_repeats=True)  # fmt: skip
    assert found.is_memorised and found.last_score == 1.0 and found.labels > 5


def test_overfit_learns_a_batch_of_classes_and_stops_when_nothing_is_left():
    found = overfit(INTENT, training__optimizer__learn_rate=0.5, steps=500)
    assert found.is_memorised and found.last_score == 1.0 and found.examples == 24
    assert found.losses[-1] < 1e-4 and found.steps < 500
    assert len(found.losses) == found.steps + 1
    # Dropout is off: without half of its only word, a text has none.
    assert found.hints == []


@pytest.mark.parametrize("threshold", [0.5, "dev"])
def test_overfit_compares_sets_of_labels(threshold, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_topics(tmp_path)
    found = overfit(MULTI_LABEL, agent__threshold=threshold)
    assert found.is_memorised and found.last_score == 1.0 and found.labels > 4
    assert found.without_gradient == [] and found.hints == []


def test_overfit_is_deterministic():
    assert overfit(steps=5) == overfit(steps=5)


def test_overfit_says_that_the_learning_rate_is_too_low_zero_or_too_high():
    found = overfit(training__optimizer__learn_rate=1e-9)
    assert not found.is_memorised and found.last_score < 0.5
    assert "find-lr" in found.hints[-1] and "1e-09" in found.hints[-1]
    found = overfit(training__optimizer__learn_rate=0.0)
    assert not found.is_memorised and found.hints == ["The learning rate is 0."]
    assert len(found.unchanged) > 3 and len(set(found.losses)) == 1
    found = overfit(training__optimizer__learn_rate=1e30)
    assert not found.is_memorised and len(found.hints) == 1 and "not finite" in found.hints[0]


def test_overfit_too_few_steps_says_that_the_loss_still_falls():
    found = overfit(steps=5, training__optimizer__learn_rate=0.002)
    assert not found.is_memorised and "is still falling: give more --steps" in found.hints[-1]


@registry.layers("test_overfit.Blocked.v1")
def blocked(width: int):
    """Make an encoder whose gradient stops half way."""
    from thinc.api import Linear, Model, chain

    from thincdialog.layers.bag_embed import BagEmbed

    def forward(model, X, is_train):
        return X, lambda dY: dY * 0

    return chain(BagEmbed(width), Linear(width, width), Model("blocked", forward), Linear(width))


def test_overfit_names_the_layers_that_get_no_gradient():
    text = INTENT.replace('@models = "thincdialog.BagEncoder.v1"\nwidth = 8\ntoken_dropout = 0.5',
                          '@layers = "test_overfit.Blocked.v1"\nwidth = 8')  # fmt: skip
    found = overfit(text, steps=20)
    assert found.without_gradient == ["E of bag_embed", "W of linear", "b of linear"]
    assert "No gradient reaches E of bag_embed, W of linear, b of linear." in found.hints[0]
    assert not found.is_memorised


def test_overfit_knows_the_best_possible_score_if_contexts_repeat():
    overrides = {"tasks.it.n_same": 12, "training.optimizer.learn_rate": 0.5}
    found = debug_overfit(INTENT, overrides=overrides, stderr=io.StringIO())
    # Words 0 to 12 are one text, with 7 times x and 6 times y.
    assert found.best_possible == pytest.approx(18 / 24)
    assert found.last_score == pytest.approx(18 / 24) and found.is_memorised


def test_overfit_one_label_is_nothing_to_learn():
    found = overfit(agent__candidates="batch", world__batcher__size=1)
    assert not found.is_memorised and "nothing to learn" in found.hints[0]


def test_overfit_refuses_impossible_settings():
    with pytest.raises(DialogError, match="steps = 0, expected 1 or more"):
        overfit(steps=0)
    with pytest.raises(ConfigError, match="max_stepz"):
        overfit(training__max_stepz=1)
    with pytest.raises(DataError, match="label"):
        overfit(INTENT, tasks__it__labels=[None])
