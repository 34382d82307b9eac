"""Words: batches keep within the budget and fill it well."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batchers import strategies
from tests.batchers.corpora import (
    QUOTES,
    batch_cells,
    one_field,
    order_follows_length,
    padding,
    quotes,
    skewed,
    two_fields,
)
from thincdialog.batchers import Lengths, Padded, Words, missing_rows, plan_window


@pytest.mark.parametrize(
    "batcher, expected",
    [
        (Words(80), [[38, 17], [13, 12, 12, 10, 8, 6], [6, 5, 2, 2]]),
        # The same by tokens that are really padded, for an agent that pads.
        (Padded(80), [[38, 17], [13, 12, 12, 10, 8, 6], [6, 5, 2, 2]]),
        (Words(80, padding=False), [[38, 17, 13, 12], [12, 10, 8, 6, 6, 5, 2, 2]]),
    ],
    ids=["padded", "as padded", "not padded"],
)
def test_words_of_the_worked_example(batcher, expected):
    batches = batcher.plan(quotes(), 80, np.random.default_rng(0))
    assert [[QUOTES[row] for row in batch] for batch in batches] == expected


@pytest.mark.parametrize("is_padded", [False, True, None])
@given(strategies.lengths(), st.one_of(st.integers(1, 80), st.integers(1, 10**7)))
def test_words_budget_is_never_exceeded_but_by_a_row_alone(is_padded, lengths, budget):
    batcher, counted = Padded(budget), lengths
    if is_padded is not None:
        batcher = Words(budget, padding=is_padded)
        counted = Lengths(lengths.counts, (is_padded,) * lengths.counts.shape[1])
    batches = plan_window(batcher, lengths, budget, np.random.default_rng(0))
    for batch, n_cells in zip(batches, batch_cells(counted, batches)):
        assert n_cells <= budget or len(batch) == 1
    oversize = [row for row in range(len(lengths.counts)) if lengths.counts[row].sum() > budget]
    assert sorted(batch[0] for batch in batches if len(batch) == 1 and batch[0] in oversize) == (
        oversize
    )


@given(strategies.lengths(words=st.integers(0, 9)), st.integers(1, 30))
def test_words_empty_rows_take_a_cell_each(lengths, budget):
    for is_padded in (True, False):
        batches = Words(budget, padding=is_padded).plan(lengths, budget, np.random.default_rng(0))
        for batch in batches:
            n_empty = int((lengths.counts[batch].sum(axis=1) == 0).sum())
            assert n_empty <= budget


def window(batcher, lengths):
    """Return as many rows as the default window has."""
    n_rows, n_window = len(lengths.counts), 0
    while n_window < n_rows:
        n_missing = missing_rows(batcher, 0, n_window, int(lengths.totals[:n_window].sum()))
        if not n_missing:
            break
        n_window = min(n_rows, n_window + n_missing)
    return lengths.take(np.arange(n_window))


@pytest.mark.parametrize(
    "lengths, budget, most",
    [(one_field(40_000), 1024, 0.012), (two_fields(20_000), 4096, 0.055), (skewed(), 1600, 0.12)],
    ids=["one field", "two fields", "skewed"],
)
def test_words_default_window_pads_little_and_mixes_the_order(lengths, budget, most):
    batcher = Words(budget)
    rows = window(batcher, lengths)
    batches = plan_window(batcher, rows, budget, np.random.default_rng(0))
    assert padding(rows, batches) <= most
    assert max(batch_cells(rows, batches)) <= budget
    assert abs(order_follows_length(rows, batches)) < 0.2
