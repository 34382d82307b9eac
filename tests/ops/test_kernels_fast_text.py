"""The kernel of the fastText-like classifier makes the step of the layers and the loss."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.array_backends import in_threads, ragged
from thincdialog.losses.class_softmax import ClassSoftmax
from thincdialog.models.fast_text import FastText
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.vocabulary_size import set_vocabulary
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.ops.compiled import load_kernels
from thincdialog.ops.rows_apart import RowsApart, Tokens

pytest.importorskip("numba")
N_IDS, N_CLASSES, WIDTH = 12, 5, 20
WEIGHTS = np.array([1, 0.5, 2, 0, 3], dtype="f")


class Step:
    """A model, and examples that the kernel and the layers can read."""

    def __init__(self, texts, targets, candidates=None, weights=None):
        with using_ops(get_dialog_ops(-1)):
            self.model = FastText(WIDTH)
            set_vocabulary(self.model, N_IDS)
            self.texts = ragged(texts)
            self.model.initialize(self.texts, np.zeros((1, N_CLASSES), dtype="f"))
        self.parameters = FlatParameters(self.model)
        self.values = self.parameters.values
        draw = np.random.default_rng(3).uniform
        for slot in self.parameters.slots:  # The gaps between slots stay zero.
            slot.of(self.values)[:] = draw(-0.7, 0.7, size=slot.shape)
        self.targets = np.array(targets, dtype="i")
        self.candidates = np.array(candidates or [[]] * len(targets), dtype="i")
        self.weights = np.ones(N_CLASSES, dtype="f") if weights is None else weights

    def by_kernel(self, rate, *, clip=0.0, shared=False, examples=slice(None)):
        """Train with the kernel. Return the number of examples, the sum of squared norms, and the
        losses."""
        targets = self.targets[examples]
        first = range(len(self.targets))[examples].start
        table, output = map(self.model.get_ref, ("table", "output"))
        offset_of = self.parameters.offset_of
        losses = np.zeros(len(targets), dtype="f")
        words = Tokens(offset_of(table, "E"), self.texts.dataXd[:, 0].copy())
        classes = Tokens(offset_of(output, "W"), np.arange(N_CLASSES, dtype="i"), len(targets))
        room = RowsApart(2 if shared else 0)
        n_trained, norms = load_kernels("fast_text").learn_batch(
            *room.prepare(self.values, np.zeros(0, dtype="f"), WIDTH, [words, classes]),
            np.cumsum([0, *self.texts.lengths])[first:].astype(np.int64),
            targets,
            self.candidates[examples],
            self.weights,
            rate,
            clip,
            losses,
        )
        return n_trained, norms, losses

    def by_layers(self):
        """Return the gradient of the sum of the losses, and the losses, computed by the layers."""
        logits, backprop = self.model.begin_update(self.texts)
        if self.candidates.shape[1]:
            d_logits, losses = logistic(logits, self.candidates)
            losses, d_logits = (
                losses * self.weights[self.targets],
                d_logits * self.weights[self.targets, None],
            )
        else:
            d_logits, losses = ClassSoftmax(0.0)(logits, self.targets, self.weights)
        backprop(d_logits.astype("f"))
        return self.parameters.gradients.copy(), losses


def logistic(logits, candidates):
    """Return the loss of the first candidate as the right one and the others as wrong, each
    separately."""
    d_logits, losses = np.zeros_like(logits, dtype="d"), np.zeros(len(logits))
    for i, (right, *wrong) in enumerate(candidates):
        for c, wanted in [(right, 1.0), *((c, 0.0) for c in wrong)]:
            p = 1 / (1 + np.exp(-float(logits[i, c])))
            losses[i] -= np.log(p if wanted else 1 - p)
            d_logits[i, c] += p - wanted
    return d_logits, losses


TEXT = [3, 4, 4, 10, 0, 2]
MANY = ([[3, 4], [], [0, 2, 11], [7] * 9, [5, 3, 5]] * 10, [0, 1, 2, 4, 2] * 10)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("candidates", [None, [[2, 0, 4, 4]]])
def test_kernels_fast_text_step_is_the_gradient_of_the_layers(candidates, weights):
    step = Step([TEXT], [2], candidates, weights)
    gradient, expected = step.by_layers()
    before = step.values.copy()
    n_trained, _, losses = step.by_kernel(1.0)
    assert n_trained == 1 and losses[0] > 0
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(before - step.values, gradient, atol=1e-6)


@settings(max_examples=40)
@given(
    text=st.lists(st.integers(0, N_IDS - 1), max_size=9),
    target=st.integers(0, N_CLASSES - 1),
    wrong=st.lists(st.integers(0, N_CLASSES - 1), max_size=8),
    clip=st.sampled_from([0.0, 1e6]),
    shared=st.booleans(),
)
def test_kernels_fast_text_any_text(text, target, wrong, clip, shared):
    step = Step([text], [target], [[target, *wrong]] if wrong else None)
    gradient, expected = step.by_layers()
    before = step.values.copy()
    _, norm, losses = step.by_kernel(1.0, clip=clip, shared=shared)
    np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(before - step.values, gradient, atol=2e-6)
    rows = [[*text], [target, *wrong]]
    if all(len(set(each)) == len(each) for each in rows):  # A word that occurs twice counts twice.
        assert norm == pytest.approx(float(gradient @ gradient), rel=1e-4)


@pytest.mark.parametrize("clip", [0.0, 1e6])
def test_kernels_fast_text_a_worker_with_a_copy_learns_as_one_without(clip):
    texts, targets = MANY
    one, other = (Step(texts * 6, targets * 6, weights=WEIGHTS) for _ in range(2))
    n, _, losses = one.by_kernel(0.5, clip=clip, shared=True)
    # More examples than it trains on before its copies are merged with the weights.
    assert n == 300
    np.testing.assert_allclose(losses, other.by_kernel(0.5, clip=clip)[2], atol=1e-4)
    np.testing.assert_allclose(one.values, other.values, atol=1e-4)


def test_kernels_fast_text_examples_come_one_after_another():
    together, alone = Step(*MANY), Step(*MANY)
    n, norms, losses = together.by_kernel(0.5)
    one_by_one = [alone.by_kernel(0.5, examples=slice(i, i + 1)) for i in range(50)]
    assert n == 50
    assert losses.tolist() == [float(each[2][0]) for each in one_by_one]
    assert norms == pytest.approx(sum(each[1] for each in one_by_one))
    np.testing.assert_array_equal(together.values, alone.values)


def test_kernels_fast_text_negatives_leave_other_classes_alone():
    step = Step([TEXT], [2], [[2, 0, 4]])
    output = step.model.get_ref("output")
    before = output.get_param("W").copy()
    step.by_kernel(1.0)
    has_changed = (before != output.get_param("W")).any(axis=1)
    assert has_changed.tolist() == [True, False, True, False, True]


@pytest.mark.parametrize("candidates", [None, [[2, 0, 4]]])
def test_kernels_fast_text_clips_the_norm_of_each_example(candidates):
    text = [3, 4, 10, 0, 2]  # No word occurs twice.
    step = Step([text], [2], candidates)
    gradient, _ = step.by_layers()
    norm = float(np.linalg.norm(gradient))
    before = step.values.copy()
    _, norms, _ = step.by_kernel(1.0, clip=norm / 4)
    assert norms == pytest.approx(norm**2, rel=1e-4)
    np.testing.assert_allclose(before - step.values, gradient / 4, atol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_kernels_fast_text_stops_before_an_example_without_a_finite_loss(bad, shared):
    steps = Step(*MANY), Step(*MANY)
    for step in steps:  # Only the third example has the bad value.
        step.model.get_ref("table").get_param("E")[11, 3] = bad
    stopped, expected = steps
    n, _, losses = stopped.by_kernel(0.5, shared=shared)
    assert n == 2 and (losses[:2] > 0).all() and not losses[2:].any()
    assert expected.by_kernel(0.5, examples=slice(0, 2))[0] == 2
    np.testing.assert_allclose(stopped.values, expected.values, atol=1e-6)


def test_kernels_fast_text_threads_keep_each_others_steps():
    """A step of one thread on the output layer is not overwritten by the other thread."""
    step = Step(*MANY)

    def work(first):
        for _ in range(60):
            step.by_kernel(0.2, shared=True, examples=slice(first, first + 25))

    in_threads(work, (0, 25))
    losses = step.by_kernel(0.0)[2]
    assert np.isfinite(step.values).all()
    # All but the examples without words, whose class cannot be learned.
    assert losses.reshape(10, 5)[:, [0, 2, 3, 4]].max() < 0.3
