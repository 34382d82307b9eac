"""Batchsort: batches have exact sizes and rows of similar lengths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batchers import strategies
from tests.batchers.corpora import QUOTES, order_follows_length, padding, quotes, skewed, two_fields
from thincdialog.batchers import Batchsort, plan_window
from thincdialog.errors import ConfigError


def test_batchsort_of_the_worked_example():
    batches = Batchsort(3).plan(quotes(), 3, np.random.default_rng(0))
    words = sorted(sorted(QUOTES[row] for row in batch) for batch in batches)
    assert words == [[2, 2, 5], [6, 6, 8], [10, 12, 12], [13, 17, 38]]


@given(strategies.lengths(), st.integers(1, 70))
def test_batchsort_sizes_are_exact(lengths, size):
    batches = plan_window(Batchsort(size), lengths, size, np.random.default_rng(0))
    n_full, rest = divmod(len(lengths.counts), size)
    assert sorted(map(len, batches), reverse=True) == [size] * n_full + [rest] * bool(rest)


@pytest.mark.parametrize("lengths, most", [(skewed(), 0.25), (two_fields(8192), 0.06)])
def test_batchsort_pads_little_and_mixes_the_order(lengths, most):
    batches = plan_window(Batchsort(32), lengths, 32, np.random.default_rng(0))
    assert padding(lengths, batches) <= most
    assert abs(order_follows_length(lengths, batches)) < 0.2


@given(strategies.lengths(), st.integers(1, 70), st.integers(0, 40))
def test_batchsort_lengths_differ_by_no_more_than_max_range(lengths, size, max_range):
    batcher = Batchsort(size, max_range=max_range)
    batches = plan_window(batcher, lengths, size, np.random.default_rng(0))
    assert all(len(batch) <= size for batch in batches)
    assert all((np.ptp(lengths.counts[batch], axis=0) <= max_range).all() for batch in batches)
    widest = batcher.plan(lengths, size, None) if len(lengths.counts) else []
    if len(lengths.counts) and (np.ptp(lengths.counts, axis=0) <= max_range).all():
        plain = Batchsort(size).plan(lengths, size, None)
        assert [batch.tolist() for batch in widest] == [batch.tolist() for batch in plain]


def test_batchsort_max_range_of_the_worked_example():
    batches = Batchsort(3, max_range=2).plan(quotes(), 3, np.random.default_rng(0))
    words = sorted(sorted(QUOTES[row] for row in batch) for batch in batches)
    assert words == [[2, 2], [5, 6, 6], [8, 10], [12, 12, 13], [17], [38]]
    with pytest.raises(ConfigError, match="'max_range' .* is -1 - give 0 tokens or more"):
        Batchsort(3, max_range=-1)
