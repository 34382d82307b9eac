"""Padded: within a budget of the cells that the agent allocates."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.batchers import strategies
from tests.batchers.corpora import lengths_of, padding, two_fields
from thincdialog.batchers import Lengths, Padded, Words, plan_window


@given(strategies.lengths(), st.integers(1, 80))
def test_padded_is_words_where_all_fields_are_padded(lengths, budget):
    lengths = Lengths(lengths.counts, (True,) * lengths.counts.shape[1])
    plans = [
        [batch.tolist() for batch in batcher.plan(lengths, budget, np.random.default_rng(0))]
        for batcher in (Words(budget), Padded(budget))
    ]
    assert plans[0] == plans[1]


@given(strategies.lengths(words=st.integers(0, 12)), st.integers(12 * 3, 80))
def test_padded_takes_rows_as_they_come_for_an_agent_that_pads_nothing(lengths, budget):
    lengths = Lengths(lengths.counts, (False,) * lengths.counts.shape[1])
    expected, spent = [[]], 0
    for row, n_words in enumerate(lengths.totals.tolist()):
        if spent + n_words > budget:
            expected.append([])
            spent = 0
        expected[-1].append(row)
        spent += n_words
    batches = Padded(budget).plan(lengths, budget, np.random.default_rng(0))
    assert [batch.tolist() for batch in batches] == expected


def test_padded_counts_words_of_a_field_that_is_not_padded():
    # As a rectangle, the second field would exceed the budget: 4 rows of 20.
    lengths = lengths_of([(5, 20), (5, 1), (5, 1), (5, 1)], (True, False))
    batches = Padded(43).plan(lengths, 43, np.random.default_rng(0))
    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3]]
    assert len(Words(43).plan(lengths, 43, np.random.default_rng(0))) > 1


def test_padded_sorts_by_the_padded_field():
    lengths = Lengths(two_fields(4000).counts, (True, False))
    batches = plan_window(Padded(4096), lengths, 4096, np.random.default_rng(0))
    assert padding(lengths, batches) < 0.02
