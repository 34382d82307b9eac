"""The best candidates of each row: those of a sort, wherever they are ranked."""

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.ops.array_backends import backend
from thincdialog.agents.best_candidates import best_candidates

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
