"""The best candidates of each row: those of a sort, wherever they are ranked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.array_backends import backend
from thincdialog.agents.best_candidates import best_candidates
from thincdialog.messages import Message

from . import colours
from .colours import make

# Many are equal, some are no numbers.
CELLS = st.sampled_from([-2.0, -0.0, 0.0, 0.5, 3.0, np.inf, np.nan])
ROWS = st.lists(
    st.lists(st.tuples(CELLS, st.booleans()), min_size=1, max_size=40), min_size=1, max_size=4
)


def test_best_candidates_are_those_of_a_sort():
    scores = np.array([1, 3, 3, 2, 5, 4], dtype="f")
    first, second = best_candidates(
        make_ops(-1), scores, [4, 2], 3, [None, np.array([True, False])], [3, -1]
    )
    assert first.places.tolist() == [1, 2, 3] and first.scores.tolist() == [3, 3, 2]
    P = np.exp([3.0, 3.0, 2.0]) / np.exp([1.0, 3.0, 3.0, 2.0]).sum()
    assert first.probabilities.tolist() == pytest.approx(P.tolist())
    assert first.loss == pytest.approx(-np.log(P[2])) and second.loss is None
    assert second.places.tolist() == [1, 0] and second.probabilities.tolist() == [1, 0]


def make_ops(gpu_id):
    with backend(gpu_id) as ops:
        return ops


@pytest.mark.gpu
@pytest.mark.parametrize("n_threads", [1, 7, 128])
@given(rows=ROWS, n_best=st.integers(1, 45), with_repeats=st.booleans())
def test_best_candidates_of_a_device_are_those_of_the_host(n_threads, rows, n_best, with_repeats):
    cupy = pytest.importorskip("cupy")
    if hasattr(cupy, "is_stand_in"):
        cupy._kernels.threads_of_a_block = n_threads
    host, device = make_ops(-1), make_ops(0)
    scores = np.array([score for row in rows for score, _ in row], dtype="f")
    repeats = [np.array([repeats for _, repeats in row]) if with_repeats else None for row in rows]
    given = [len(row) for row in rows], n_best, repeats, [len(row) - 1 for row in rows]
    try:
        with np.errstate(all="ignore"):
            wanted = best_candidates(host, scores, *given)
            found = best_candidates(device, device.asarray(scores), *given)
    finally:
        if hasattr(cupy, "is_stand_in"):
            cupy._kernels.threads_of_a_block = 1
    for one, other in zip(found, wanted):
        assert one.places.tolist() == other.places.tolist()
        np.testing.assert_array_equal(one.scores, other.scores)
        if np.isfinite(scores).all():
            assert one.probabilities == pytest.approx(other.probabilities, rel=1e-5)
            assert one.loss == pytest.approx(other.loss, rel=1e-5, abs=1e-6)


@pytest.mark.gpu
def test_best_candidates_alone_come_to_the_host():
    cupy = pytest.importorskip("cupy")
    if not hasattr(cupy, "is_stand_in"):
        pytest.skip("needs the stand-in for CuPy, which counts")
    rows = colours.examples({f"red {number}": f"answer {number}" for number in range(3000)})
    asked, found, weights = [Message(text=f"red {number}") for number in range(30)], [], None
    for gpu_id in (-1, 0):
        with backend(gpu_id) as ops:
            encoder = make("models", "BagEncoder", width=16, depth=0)
            model = make("models", "BiEncoder", encoder)
            agent = make("agents", "Ranker", model, max_fixed_candidates=5000)
            agent.initialize(colours.teacher_of(rows), tokenizer=make("tokenizers", "Words"))
        weights = ops.to_numpy(agent.parameters.values) if weights is None else weights
        agent.parameters.values[:] = ops.asarray(weights)
        with agent.evaluating():
            with cupy.counted() as first:
                agent.answer(asked)
            with cupy.counted() as later:
                replies = agent.answer(asked)
        found.append([reply["text_candidates"] for reply in replies])
    assert len(agent.fixed) == 3000 and found[0] == found[1]
    # All candidates in one batch, which are kept; then the conversations alone.
    assert first.launches <= 2 * later.launches, first.shown("launches")
    assert first.d2h == later.d2h == 1, later.shown("d2h")
    assert later.d2h_bytes == 30 * (2 * 100 + 5) * 4
