"""The order of additions is a tree that depends only on the number of microbatches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import NumpyOps

from tests.ops.array_backends import BACKENDS, new_ops
from thincdialog.models.gradient_sum import GradientSum
from thincdialog.optimizers.row_sparse import Segment

N_ROWS, WIDTH = 9, 2
# A table between two segments that are not tables.
STRETCHES = [Segment(0, 7), Segment(8, 8 + N_ROWS * WIDTH, WIDTH), Segment(32, 35)]


def tree_sum(vectors):
    """A slow reference: split at the largest power of two, and add the sums of both parts."""
    if len(vectors) == 1:
        return vectors[0]
    size = 1
    while size * 2 < len(vectors):
        size *= 2
    return tree_sum(vectors[:size]) + tree_sum(vectors[size:])


@pytest.mark.parametrize("backend", BACKENDS)
@given(
    rows=st.lists(st.sets(st.integers(0, N_ROWS - 1)), min_size=1, max_size=20),
    seed=st.integers(0, 9),
)
def test_gradients_sum_equals_the_tree_bit_for_bit(backend, rows, seed):
    ops, rng, wholes = new_ops(backend), np.random.default_rng(seed), []
    total = GradientSum(ops, STRETCHES)
    for each in rows:
        whole = (rng.normal(size=35) * 10.0 ** rng.integers(-5, 5)).astype("f")
        table, numbers = whole[8:26].reshape(N_ROWS, WIDTH), np.array(sorted(each), dtype="i")
        table[[row for row in range(N_ROWS) if row not in each]] = 0
        whole[7], whole[26:32] = 0, 0
        wholes.append(whole)
        vector = ops.asarray1f(whole.copy())
        total.add(vector, [(numbers, ops.asarray2f(table[numbers]))])
        vector[:] = 100  # It was copied, so this changes nothing.
    into = ops.alloc1f(35)
    ((numbers, values),) = total.take(into)
    found = ops.to_numpy(into)
    found[8:26].reshape(N_ROWS, WIDTH)[numbers] = ops.to_numpy(values)
    assert numbers.tolist() == sorted(set().union(*rows))
    assert (found + 0.0).tobytes() == (tree_sum(wholes) + 0.0).tobytes()


def test_gradients_are_zero_once_they_are_added_and_the_sum_starts_afresh():
    total = GradientSum(NumpyOps(), [Segment(0, 3)])
    vector = np.ones(3, dtype="f")
    total.add(vector, [])
    assert not vector.any()
    assert total.take(vector) == [] and vector.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="no gradient"):
        total.take(vector)
