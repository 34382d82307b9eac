"""Batchsort: sizes are exact, lengths are alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batchers import strategies
from tests.batchers.corpora import QUOTES, order_follows_length, padding, quotes, skewed, two_fields
from thincdialog.batchers import Batchsort, plan_window


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
