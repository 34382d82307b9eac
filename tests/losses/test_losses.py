"""Losses compared with their formulas, and their gradients with finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.array_backends import EACH_OPS
from thincdialog.registry import registry

registry.ensure_populated()
STEP = 1e-3
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 6))


def make(name, **settings):
    return registry.losses.get(f"thincdialog.{name}.v1")(**settings)


def scores_of(shape, seed=0):
    """Draw scores far enough apart that a small step does not cross a kink of the hinge."""
    rng = np.random.default_rng(seed)
    flat = rng.permutation(shape[0] * shape[1]).astype("f") * 0.073
    return flat.reshape(shape), rng.integers(0, shape[1], size=shape[0])


def check_gradient(loss, scores, targets, extra, ops):
    device = [ops.asarray2f(scores), ops.asarray1i(targets), extra]
    gradient, losses = loss(*device)
    assert gradient.shape == scores.shape and gradient.dtype == np.float32
    assert losses.shape == (len(scores),)
    gradient = ops.to_numpy(gradient)

    def total(values):
        return float(loss(ops.asarray2f(values.astype("f")), device[1], extra)[1].sum())

    for at in np.ndindex(*scores.shape):
        step = np.zeros(scores.shape)
        step[at] = STEP
        slope = (total(scores + step) - total(scores - step)) / (2 * STEP)
        assert abs(slope - gradient[at]) < 1e-2, at
    assert (ops.to_numpy(device[0]) == scores).all()


@EACH_OPS
@pytest.mark.parametrize(
    "name, settings",
    [
        ("RankingSoftmax", {}),
        ("RankingHinge", {"margin": 0.5}),
        ("RankingHinge", {"margin": 0.5, "negatives": "hardest"}),
        ("ClassSoftmax", {}),
        ("ClassSoftmax", {"label_smoothing": 0.2}),
    ],
)
def test_losses_gradient_is_that_of_the_sum(name, settings, ops):
    scores, targets = scores_of((4, 5))
    loss = make(name, **settings)
    check_gradient(loss, scores, targets, None, ops)
    if name == "ClassSoftmax":
        extra = ops.asarray1f([0.5, 2.0, 1.0, 0.0, 3.0])
    else:
        extra = ops.asarray(np.random.default_rng(1).random((4, 5)) > 0.4)
    check_gradient(loss, scores, targets, extra, ops)


@given(SHAPES)
def test_losses_ranking_softmax_is_minus_log_probability(shape):
    scores, targets = scores_of(shape)
    _, losses = make("RankingSoftmax")(scores, targets)
    P = np.exp(scores.astype("d"))
    P /= P.sum(axis=1, keepdims=True)
    wanted = -np.log(P[np.arange(shape[0]), targets])
    np.testing.assert_allclose(losses, wanted, rtol=1e-4, atol=1e-6)


@given(SHAPES)
def test_losses_excluded_candidates_are_as_if_absent(shape):
    scores, targets = scores_of(shape)
    allowed = np.random.default_rng(2).random(shape) > 0.5
    kept = allowed.copy()
    for name in ("RankingSoftmax", "RankingHinge"):
        gradient, losses = make(name)(scores, targets, allowed)
        assert (allowed == kept).all()
        for row, target in enumerate(targets):
            present = np.flatnonzero(allowed[row] | (np.arange(shape[1]) == target))
            at = np.array([list(present).index(target)])
            alone, loss = make(name)(scores[row : row + 1, present], at)
            np.testing.assert_allclose(losses[row], loss[0], rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(gradient[row, present], alone[0], rtol=1e-4, atol=1e-6)
            absent = np.delete(gradient[row], present)
            assert not absent.any()


def test_losses_hinge_by_hand():
    scores = np.array([[1.0, 0.9, 0.0], [0.0, 2.0, 1.9]], dtype="f")
    targets = np.array([0, 2])
    gradient, losses = make("RankingHinge", margin=0.5)(scores, targets)
    np.testing.assert_allclose(losses, [0.4 / 2, 0.6 / 2], rtol=1e-5)
    np.testing.assert_allclose(gradient, [[-0.5, 0.5, 0], [0, 0.5, -0.5]])
    gradient, losses = make("RankingHinge", margin=2.0, negatives="hardest")(scores, targets)
    np.testing.assert_allclose(losses, [1.9, 2.1], rtol=1e-5)
    np.testing.assert_allclose(gradient, [[-1, 1, 0], [0, 1, -1]])


def test_losses_class_softmax_smoothing_and_weights_by_hand():
    logits = np.log(np.array([[0.7, 0.2, 0.1]], dtype="f"))
    weights = np.array([2.0, 1.0, 1.0], dtype="f")
    _, losses = make("ClassSoftmax", label_smoothing=0.3)(logits, np.array([0]), weights)
    log_p = np.log([0.7, 0.2, 0.1])
    np.testing.assert_allclose(losses, [-2 * (0.7 * log_p[0] + 0.1 * log_p.sum())], rtol=1e-5)


@pytest.mark.parametrize("name", ["RankingSoftmax", "ClassSoftmax", "RankingHinge"])
def test_losses_huge_scores_stay_finite(name):
    scores = np.array([[3e4, -3e4, 0.0], [-3e4, 3e4, 3e4]], dtype="f")
    gradient, losses = make(name)(scores, np.array([1, 0]))
    assert np.isfinite(gradient).all() and np.isfinite(losses).all()
    assert (losses > 1e4).all()


def test_losses_one_candidate_costs_nothing():
    scores = np.array([[5.0]], dtype="f")
    for name in ("RankingSoftmax", "RankingHinge"):
        for settings in ({}, {"negatives": "hardest"})[: 1 + (name == "RankingHinge")]:
            gradient, losses = make(name, **settings)(scores, np.array([0]))
            assert gradient.tolist() == [[0]] and losses.tolist() == [0]


@pytest.mark.parametrize(
    "name, settings, text",
    [
        ("RankingHinge", {"margin": 0.0}, "margin = 0.0"),
        ("ClassSoftmax", {"label_smoothing": 1.0}, "label_smoothing = 1.0"),
        ("ClassSoftmax", {"label_smoothing": -0.1}, "label_smoothing = -0.1"),
    ],
)
def test_losses_settings_out_of_range(name, settings, text):
    with pytest.raises(ValueError, match=text):
        make(name, **settings)


@EACH_OPS
def test_losses_label_sigmoid_is_the_sum_over_labels_and_its_gradient(ops):
    scores, _ = scores_of((4, 5))
    targets = np.random.default_rng(1).integers(0, 2, scores.shape).astype("f")
    P = 1 / (1 + np.exp(-scores.astype("d")))
    wanted = -(targets * np.log(P) + (1 - targets) * np.log(1 - P)).sum(axis=1)
    gradient, losses = make("LabelSigmoid")(ops.asarray2f(scores), ops.asarray2f(targets))
    assert gradient.dtype == losses.dtype == np.float32
    np.testing.assert_allclose(ops.to_numpy(losses), wanted, rtol=1e-5)
    np.testing.assert_allclose(ops.to_numpy(gradient), P - targets, atol=1e-6)


@EACH_OPS
def test_losses_label_sigmoid_of_extreme_logits_is_finite(ops):
    logits, targets = np.array([[200.0, -200.0]], "f"), np.array([[0.0, 1.0]], "f")
    gradient, losses = make("LabelSigmoid")(ops.asarray2f(logits), ops.asarray2f(targets))
    assert ops.to_numpy(losses).tolist() == [400.0]
    assert ops.to_numpy(gradient).tolist() == [[1.0, -1.0]]
