"""Orders that are computed place by place."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.examples.shuffled import Shuffled

WORDS = [1, 2, 3]


@given(st.integers(0, 3000), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5))
def test_every_number_stands_at_one_place(n, words):
    order = Shuffled(n, words)
    assert sorted(order[:].tolist()) == list(range(n)) and len(order) == n


@given(st.integers(0, 40_000), st.integers(0, 40_000), st.integers(0, 40_000))
def test_parts_are_those_of_the_whole(n, start, stop):
    whole = Shuffled(n, WORDS).at(np.arange(n))
    order = Shuffled(n, WORDS)
    assert order[start:stop].tolist() == whole[start:stop].tolist()
    for place in {start, stop, 0, n - 1}:
        if 0 <= place < n:
            assert order.item(place) == order[place] == whole[place]


def test_members_stand_in_the_place_of_numbers():
    members = np.array([5, 7, 70])
    assert sorted(Shuffled(3, WORDS, members.__getitem__)[:].tolist()) == [5, 7, 70]


def test_an_order_looks_drawn():
    n = 50_000
    first, second = Shuffled(n, [1])[:], Shuffled(n, [2])[:]
    for order in (first, second):
        # Of drawn ones, one stands in its place on average, and neighbours are not alike.
        assert (order == np.arange(n)).sum() < 10
        assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.03
        assert abs(np.corrcoef(order, np.arange(n))[0, 1]) < 0.03
        # Each tenth of the places has a tenth of each tenth of the numbers.
        counts = np.histogram2d(np.arange(n), order, bins=10)[0]
        assert np.abs(counts - n / 100).max() < 6 * np.sqrt(n / 100)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
