"""Orders for workers: how many each has, and how long nobody needs another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.worlds.orders import AHEAD, MOST_AHEAD, SECONDS_AHEAD, Orders
from thincdialog.worlds.world_worker import Parleyed


def hand_out_all(orders):
    """Who gets orders till nobody has room."""
    found = []
    while True:
        orders.add(None)
        given_to = orders.hand_out()
        if given_to is None:
            return found
        found.append(given_to[0])


def answered(seconds):
    return Parleyed(None, True, False, seconds)


@pytest.mark.parametrize(
    "seconds, most",
    [(1.0, 2), (0.02, 2), (0.011, 3), (0.002, 11), (0.0011, 1 + MOST_AHEAD), (0.0, 1 + MOST_AHEAD)],
)
def test_orders_of_short_parleys_are_many_ahead(seconds, most):
    orders = Orders(1, 1)
    assert hand_out_all(orders) == [0] * AHEAD
    orders.answered(0, answered(seconds))
    assert hand_out_all(orders) == [0] * (most - 1)
    assert orders.n_open - orders.n_waiting == most
    # Half of what waits behind the one that is under way.
    expected = min(SECONDS_AHEAD, (most - 1) * seconds / 2)
    assert orders.seconds_to_rest() == pytest.approx(expected)


def test_orders_rest_as_long_as_the_one_with_least_to_do():
    orders = Orders(3, 2)
    assert orders.seconds_to_rest() == 0
    assert sorted(hand_out_all(orders)) == [0, 0, 1, 1]
    assert orders.seconds_to_rest() == 0  # Nobody knows how long they take.
    orders.answered(0, answered(0.5))
    hand_out_all(orders)
    assert orders.seconds_to_rest() == 0
    orders.answered(1, answered(0.004))
    assert orders.seconds_to_rest() == 0  # It has one left, which may end at any time.
    assert set(hand_out_all(orders)) == {1}
    assert orders.seconds_to_rest() == pytest.approx(0.01)


def test_orders_rest_till_the_end_of_an_epoch_like_the_last_one():
    orders = Orders(1, 1)
    for epoch in range(3):
        rests = []
        for n_left in range(29, -1, -1):
            hand_out_all(orders)
            orders.answered(0, Parleyed(None, True, n_left == 0, 0.002))
            rests.append(round(orders.seconds_to_rest() / 0.002, 3))
        n_late = orders.n_open - orders.n_waiting
        assert n_late == (10 if epoch == 0 else 1)
        for _ in range(n_late):  # These meet a worker that is done.
            orders.answered(0, Parleyed(None, False, True, 0.0))
        # Eleven at most at a time: the one under way, and ten.
        usual = [0.0, *[4.5] * 29]
        late = [*[4.5] * 20, 4, 3.5, 3, 2.5, 2, 1.5, 1, 0.5, 0, 0]
        assert rests == (usual if epoch == 0 else late)
        orders.begin([False])
    # What was restored or reset is no whole epoch.
    orders.begin([False], is_whole=False)
    for n_left in (2, 1, 0):
        hand_out_all(orders)
        orders.answered(0, Parleyed(None, True, n_left == 0, 0.002))
    for _ in range(orders.n_open - orders.n_waiting):
        orders.answered(0, Parleyed(None, False, True, 0.0))
    orders.begin([False])
    hand_out_all(orders)
    assert orders.n_open - orders.n_waiting == 11


@given(st.lists(st.floats(0, 2), min_size=1, max_size=30))
def test_orders_believe_a_short_parley_at_once_and_a_long_one_slowly(seconds):
    orders, expected = Orders(1, 1), seconds[0]
    for each in seconds:
        expected = min(each, 0.8 * expected + 0.2 * each)
        orders.add(None)
        orders.hand_out()
        orders.answered(0, answered(each))
    n = len(hand_out_all(orders))
    least, most = (
        AHEAD - 1 + min(MOST_AHEAD, -int(-SECONDS_AHEAD // max(mean, 1e-9)))
        for mean in (expected * 1.001, expected * 0.999)
    )
    assert least <= n <= most
