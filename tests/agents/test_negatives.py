"""Random negatives, replies and classes: never the right one, and with the right frequencies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.agents.negatives import draw_classes, draw_negatives

pytest.importorskip("numba")


@given(
    pool=st.lists(st.integers(0, 6), min_size=2, max_size=12).filter(lambda p: len(set(p)) > 1),
    rights=st.lists(st.integers(0, 9), min_size=1, max_size=20),
    n=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60)
def test_negatives_are_of_the_pool_and_never_right(pool, rights, n, seed):
    arrays = np.array(rights, dtype="i"), np.array(pool, dtype="i")
    drawn = draw_negatives(np.random.default_rng(seed), *arrays, n)
    assert drawn.shape == (len(rights), 1 + n) and drawn.dtype == np.int32
    assert drawn[:, 0].tolist() == rights
    assert set(drawn[:, 1:].ravel().tolist()) <= set(pool)
    assert not (drawn[:, 1:] == drawn[:, :1]).any()
    again = draw_negatives(np.random.default_rng(seed), *arrays, n)
    assert np.array_equal(drawn, again)


@pytest.mark.slow
def test_negatives_are_not_drawn_from_one_reply():
    ones = np.ones(3, dtype="i")
    with pytest.raises(ValueError, match="only one reply: there is no wrong one"):
        draw_negatives(np.random.default_rng(0), ones, ones, 2)


def test_negatives_in_place_of_the_right_one_are_all_others_alike():
    pool = np.array([5] * 9 + [1, 7, 3], dtype="i")
    drawn = draw_negatives(np.random.default_rng(0), np.full(40000, 5, dtype="i"), pool, 1)
    counts = np.bincount(drawn[:, 1], minlength=8)[[1, 3, 7]]
    assert counts.sum() == 40000
    np.testing.assert_allclose(counts / 40000, 1 / 3, atol=0.02)


@given(
    masses=st.lists(st.integers(1, 50), min_size=2, max_size=8),
    places=st.lists(st.integers(0, 99), min_size=1, max_size=20),
    n=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60)
def test_negatives_of_classes_are_never_right(masses, places, n, seed):
    rights = np.array([place % len(masses) for place in places], dtype="i")
    drawn = draw_classes(np.random.default_rng(seed), rights, np.array(masses), n)
    assert drawn.shape == (len(rights), 1 + n) and drawn.dtype == np.int32
    assert drawn[:, 0].tolist() == rights.tolist()
    assert drawn.min() >= 0 and drawn.max() < len(masses)
    assert not (drawn[:, 1:] == drawn[:, :1]).any()


@pytest.mark.parametrize("right", [0, 2, 3])
def test_negatives_of_classes_come_as_often_as_their_mass(right):
    masses = np.array([1, 4, 2, 3])
    rights = np.full(20000, right, dtype="i")
    drawn = draw_classes(np.random.default_rng(0), rights, masses, 2)[:, 1:]
    shares = np.bincount(drawn.ravel(), minlength=4) / drawn.size
    expected = np.where(np.arange(4) == right, 0, masses) / (masses.sum() - masses[right])
    np.testing.assert_allclose(shares, expected, atol=0.01)
