"""Fixed: rows in their original order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.batchers.corpora import lengths_of
from thincdialog.batchers import Fixed


@given(st.integers(1, 50), st.integers(1, 20))
def test_fixed_takes_rows_as_they_come(n_rows, size):
    batcher = Fixed(size)
    assert not batcher.needs_lengths and batcher.buffer == 1
    batches = batcher.plan(lengths_of([[1]] * n_rows), size, np.random.default_rng(0))
    expected = [list(range(n_rows))[start : start + size] for start in range(0, n_rows, size)]
    assert [batch.tolist() for batch in batches] == expected
