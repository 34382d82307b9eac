"""Random draws for the order of the data: permutations, samples, shares."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.examples.draws import block_order, in_share, sample_episodes

seeds = st.integers(-(2**63), 2**63)


@given(st.integers(0, 200), seeds, st.integers(0, 50), st.integers(0, 5))
def test_block_order_is_a_permutation_decided_by_its_arguments(n_episodes, seed, epoch, block):
    order = block_order(n_episodes, seed, epoch, block)
    assert sorted(order) == list(range(n_episodes))
    assert (order == block_order(n_episodes, seed, epoch, block)).all()


def test_block_order_differs_by_each_argument():
    orders = [block_order(100, *words) for words in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]]
    assert len({tuple(order) for order in orders}) == 4


@given(st.lists(st.integers(1, 6), min_size=1, max_size=60), st.integers(1, 400), seeds)
def test_sample_episodes_holds_enough_and_no_more_than_an_episode_too_many(lengths, wanted, seed):
    picked = sample_episodes(np.array(lengths), wanted, seed)
    assert (np.diff(picked) > 0).all()
    total = int(np.asarray(lengths)[picked].sum())
    assert total >= min(wanted, sum(lengths))
    assert total < wanted + max(lengths) or len(picked) == len(lengths)


@given(st.integers(0, 60), st.integers(1, 7), seeds, st.integers(0, 5))
def test_every_episode_is_in_one_share_and_shares_differ_by_one(n_episodes, n, seed, block):
    shares = [in_share(n_episodes, worker, n, seed, block) for worker in range(n)]
    assert (np.sum(shares, axis=0) == 1).all()
    sizes = [int(share.sum()) for share in shares]
    assert sizes == sorted(sizes, reverse=True) and max(sizes) - min(sizes) <= 1


def test_shares_follow_no_pattern_of_the_data():
    ours = in_share(10_000, 0, 2, 0, 0)
    assert all(2300 < ours[first::2].sum() < 2700 for first in (0, 1))
    for seed, block in ((1, 0), (0, 1)):
        assert (ours != in_share(10_000, 0, 2, seed, block)).any()
