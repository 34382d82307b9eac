"""The kernel of the embedding agent makes the step of the layers and the loss."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.array_backends import in_threads, ragged
from thincdialog.losses.ranking import RankingHinge, RankingSoftmax
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.star_space import StarSpace
from thincdialog.models.vocabulary_size import set_vocabulary
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.ops.compiled import load_kernels
from thincdialog.ops.rows_apart import RowsApart, Tokens

pytest.importorskip("numba")
N_IDS, WIDTH = 12, 20
POWERS = {"mean": 1.0, "sqrt": 0.5, "sum": 0.0}
NOTHING = np.zeros(0, dtype="f")


class Step:
    """A model, and a batch of one text and candidates that the kernel and the layers can read."""

    def __init__(self, contexts, labels, candidates, loss="hinge", **options):
        self.options = {"similarity": "cosine", "pooling": "sqrt", "scale": 2.0, **options}
        with using_ops(get_dialog_ops(-1)):
            self.model = StarSpace(WIDTH, **self.options)
            set_vocabulary(self.model, N_IDS)
            self.contexts, self.labels = two_segments(contexts), two_segments(labels)
            self.model.initialize((self.contexts, self.labels))
        self.parameters = FlatParameters(self.model)
        draw = np.random.default_rng(3).uniform
        self.parameters.values[:] = draw(-0.5, 0.5, size=self.parameters.values.size)
        self.candidates = np.array(candidates, dtype="i")
        self.margin, self.is_softmax = 0.7, loss == "softmax"
        self.loss = RankingSoftmax() if self.is_softmax else RankingHinge(self.margin, "mean")

    def by_kernel(self, rate, *, squares=NOTHING, clip=0.0, examples=slice(None), values=None):
        """Train with the kernel. Return the number of examples, the sum of squared norms, and the
        losses."""
        values = self.parameters.values if values is None else values
        candidates = self.candidates[examples]
        first = range(len(self.candidates))[examples].start
        offsets = np.cumsum([0, *self.contexts.lengths])[first:].astype(np.int64)
        of_contexts, of_labels = (
            self.parameters.offset_of(self.model.get_ref(name), "E")
            for name in ("context_table", "label_table")
        )
        losses = np.zeros(len(candidates), dtype="f")
        rows = self.contexts.dataXd[:, 0] * self.n_segments
        rows += np.minimum(self.contexts.dataXd[:, 1], self.n_segments - 1)
        needed = [
            Tokens(of_contexts, rows),
            Tokens(of_labels, self.labels.dataXd[:, 0].copy()),
        ]
        of_score = self.options["similarity"] == "cosine", self.is_softmax
        factors = POWERS[self.options["pooling"]], self.options["scale"], self.margin
        n_trained, norms = load_kernels("starspace").learn_batch(
            *RowsApart(0).prepare(values, squares, WIDTH, needed),
            offsets,
            np.cumsum([0, *self.labels.lengths]),
            candidates,
            (*of_score, *factors, rate, 1e-8, clip),
            losses,
        )
        return n_trained, norms, losses

    @property
    def n_segments(self):
        return self.options.get("n_segments", 1)

    def by_layers(self):
        """Return the gradient of the only example, and its loss, computed by the layers."""
        ((right, *wrong),) = self.candidates
        scores, backprop = self.model.begin_update((self.contexts, self.labels))
        chosen = [right, *wrong]
        d_chosen, losses = self.loss(scores[:, chosen], np.zeros(1, dtype="i"))
        d_scores = np.zeros_like(scores)
        np.add.at(d_scores[0], chosen, d_chosen[0])
        backprop(d_scores)
        return self.parameters.gradients.copy(), losses


def two_segments(texts):
    """Return ids. Those in the first half of each text are one segment back."""
    return ragged([[(t, int(i < len(ids) // 2)) for i, t in enumerate(ids)] for ids in texts])


LABELS = [[1, 2, 3], [4], [5, 5, 6, 7, 8, 2], [9, 1]]
ONE = ([[3, 4, 4, 10, 0, 2]], LABELS, [[0, 1, 2, 3, 2]])


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"share": "all"},
        {"n_segments": 2, "share": "nothing"},
        {"similarity": "dot"},
        {"similarity": "dot", "pooling": "mean", "share": "all"},
        {"similarity": "dot", "pooling": "sum", "scale": 0.3},
    ],
)
def test_kernels_starspace_step_is_the_gradient_of_the_layers(loss, options):
    step = Step(*ONE, loss=loss, **options)
    gradient, expected = step.by_layers()
    before = step.parameters.values.copy()
    n_trained, _, losses = step.by_kernel(1.0)
    assert n_trained == 1 and losses[0] > 0
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(before - step.parameters.values, gradient, atol=2e-6)


texts = st.lists(st.integers(0, N_IDS - 1), max_size=9)


@settings(max_examples=40)
@given(
    context=texts,
    labels=st.lists(texts, min_size=2, max_size=6),
    loss=st.sampled_from(["hinge", "softmax"]),
    similarity=st.sampled_from(["cosine", "dot"]),
    share=st.sampled_from(["all", "nothing"]),
    drawn=st.data(),
)
def test_kernels_starspace_any_texts(context, labels, loss, similarity, share, drawn):
    numbers = st.lists(st.integers(0, len(labels) - 1), min_size=2, max_size=8)
    step = Step([context], labels, [drawn.draw(numbers)], loss, similarity=similarity, share=share)
    gradient, expected = step.by_layers()
    before = step.parameters.values.copy()
    _, _, losses = step.by_kernel(1.0)
    np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(before - step.parameters.values, gradient, atol=1e-5, rtol=1e-4)


MANY = ([[3, 4], [0, 2, 11], [], [7] * 9], LABELS, [[0, 1, 2], [3, 0, 1], [2, 3, 3], [1, 0, 2]])


def test_kernels_starspace_examples_come_one_after_another():
    together, alone = Step(*MANY), Step(*MANY)
    n, norms, losses = together.by_kernel(0.5)
    one_by_one = [alone.by_kernel(0.5, examples=slice(i, i + 1)) for i in range(4)]
    assert n == 4
    assert losses.tolist() == [float(each[2][0]) for each in one_by_one]
    assert norms == pytest.approx(sum(each[1] for each in one_by_one))
    np.testing.assert_array_equal(together.parameters.values, alone.parameters.values)


def test_kernels_starspace_adagrad_sums_the_mean_squares_of_a_row():
    # No word occurs twice, so there is one gradient per row.
    labels = [[1, 2, 3], [4], [5, 6, 7, 8], [9, 0]]
    step = Step([[3, 4, 10, 0, 2]], labels, [[0, 1, 2, 3]], share="nothing")
    gradient, _ = step.by_layers()
    before = step.parameters.values.copy()
    squares = np.full_like(before, 0.25)
    step.by_kernel(0.5, squares=squares)
    for slot in step.parameters.slots:
        rows, sums = slot.of(gradient), slot.of(squares)
        expected = 0.25 + (rows**2).mean(axis=1)
        np.testing.assert_allclose(sums[:, 0], expected, rtol=1e-4)
        assert (sums[:, 1:] == 0.25).all()
        change = slot.of(before - step.parameters.values)
        np.testing.assert_allclose(change, 0.5 * rows / np.sqrt(expected)[:, None], atol=1e-6)


@pytest.mark.parametrize("with_squares", [False, True])
def test_kernels_starspace_clips_the_norm_of_each_example(with_squares):
    labels = [[1, 2, 3], [4], [5, 6, 7, 8], [9, 0]]
    build = [[[3, 4, 10, 0, 2]], labels, [[0, 1, 2, 3]]]
    step = Step(*build, share="nothing", similarity="dot")
    gradient, _ = step.by_layers()
    norm = float(np.linalg.norm(gradient))
    before = step.parameters.values.copy()
    squares = np.zeros_like(before) if with_squares else NOTHING
    _, norms, _ = step.by_kernel(1.0, clip=norm / 4, squares=squares)
    assert norms == pytest.approx(norm**2, rel=1e-4)
    if with_squares:
        assert squares.sum() * WIDTH == pytest.approx((norm / 4) ** 2, rel=1e-4)
    else:
        np.testing.assert_allclose(before - step.parameters.values, gradient / 4, atol=1e-6)
        _, norms, _ = step.by_kernel(1.0, clip=1e6)  # Below the limit there is no clipping.
        assert norms < norm**2


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_kernels_starspace_stops_before_an_example_without_a_finite_loss(bad):
    step = Step(*MANY, similarity="dot", share="nothing")
    table = step.model.get_ref("context_table").get_param("E")
    table[11, 3] = bad  # Only the second example has the bad value.
    before = step.parameters.values.copy()
    n, _, losses = step.by_kernel(0.5)
    assert n == 1 and losses[0] > 0
    other = Step(*MANY, similarity="dot", share="nothing")
    other.parameters.values[:] = before
    assert other.by_kernel(0.5, examples=slice(0, 1))[0] == 1
    np.testing.assert_array_equal(step.parameters.values, other.parameters.values)


def test_kernels_starspace_threads_touch_nothing_but_their_rows():
    """Two threads with different words compute the same as one thread."""
    contexts = [[0, 1, 2], [6, 7]] * 50
    labels = [[3, 4], [5, 1], [8, 9, 10], [11, 6]]
    candidates = [[0, 1], [2, 3]] * 50
    step = Step(contexts, labels, candidates, "softmax")
    one_after_another = Step(contexts, labels, candidates, "softmax")
    for _ in range(20):
        for example in range(100):
            one_after_another.by_kernel(0.1, examples=slice(example, example + 1))

    def work(first):
        for _ in range(20):
            for example in range(first, 100, 2):
                step.by_kernel(0.1, examples=slice(example, example + 1))

    in_threads(work, (0, 1))
    values = one_after_another.parameters.values
    np.testing.assert_array_equal(step.parameters.values, values)


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_kernels_starspace_has_the_same_bits_wherever_memory_lies(loss):
    """Compiled loops depend on addresses. The result must not depend on the memory that is free."""
    rng = np.random.default_rng(0)
    contexts, labels = (
        [rng.integers(0, N_IDS, size=rng.integers(1, 9)).tolist() for _ in range(40)]
        for _ in range(2)
    )
    candidates = [rng.choice(40, size=11, replace=False).tolist() for _ in contexts]
    step = Step(contexts, labels, candidates, loss, scale=5.0)
    before, seen, kept = step.parameters.values.copy(), set(), []
    for _ in range(60):
        step.parameters.values[:] = before
        # Allocates many small pieces of memory, and frees half of them.
        kept.append([np.zeros(int(size), dtype="f") for size in rng.integers(8, 48, size=99)])
        kept[-1] = kept[-1][::2]
        losses = step.by_kernel(0.1, clip=1.0)[2]
        seen.add((losses.tobytes(), step.parameters.values.tobytes()))
    assert len(seen) == 1
