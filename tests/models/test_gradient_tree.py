"""The order of additions is a tree that depends on the number of microbatches only."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.models.gradient_tree import GradientTree


def tree_sum(vectors):
    """The slow obvious reference: the largest power of two first, halves added."""
    if len(vectors) == 1:
        return vectors[0]
    size = 1
    while size * 2 < len(vectors):
        size *= 2
    return tree_sum(vectors[:size]) + tree_sum(vectors[size:])


@given(n=st.integers(1, 40), seed=st.integers(0, 9))
def test_gradients_sum_is_the_tree_to_the_bit(n, seed):
    rng = np.random.default_rng(seed)
    vectors = list((rng.normal(size=(n, 7)) * 10.0 ** rng.integers(-5, 5)).astype("f"))
    tree = GradientTree()
    for vector in vectors:
        tree.add(vector)
    into = np.zeros(7, dtype="f")
    tree.take(into)
    assert into.tobytes() == tree_sum(vectors).tobytes()


def test_gradients_are_copied_and_the_tree_starts_afresh():
    tree = GradientTree()
    vector = np.ones(3, dtype="f")
    tree.add(vector)
    vector[:] = 100
    into = np.zeros(3, dtype="f")
    tree.take(into)
    assert into.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="no gradient"):
        tree.take(into)
