"""Rows in an order in which neighbours have similar lengths."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.batchers import strategies
from tests.batchers.corpora import skewed, two_fields
from thincdialog.batchers.like_lengths import longest_first, order_by_length


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 10**6)), min_size=1))
def test_like_lengths_longest_first_is_a_stable_sort(words):
    expected = sorted(range(len(words)), key=lambda row: -words[row])
    assert longest_first(np.array(words)).tolist() == expected


@given(strategies.lengths(), st.integers(1, 100), st.booleans())
def test_like_lengths_every_row_is_on_the_line_once(lengths, limit, by_cells):
    size = {"cells": limit} if by_cells else {"rows": limit}
    order = order_by_length(lengths.counts, **size)
    assert sorted(order.tolist()) == list(range(len(lengths.counts)))


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(0, 9), st.booleans())
def test_like_lengths_a_field_that_never_changes_does_not_count(words, same, is_first):
    fields = [words, [same] * len(words)]
    counts = np.array(fields if is_first else fields[::-1]).T
    expected = sorted(range(len(words)), key=lambda row: -words[row])
    assert order_by_length(counts, cells=100).tolist() == expected


def test_like_lengths_neighbours_are_alike_in_both_fields():
    # The mean distance of neighbours, as a fraction of the mean distance of any two rows.
    for lengths in (two_fields(8192), skewed()):
        counts = lengths.counts
        line = counts[order_by_length(counts, rows=32)]
        shuffled = np.random.default_rng(0).permutation(counts)
        near = np.abs(np.diff(line, axis=0)).mean(axis=0)
        far = np.abs(np.diff(shuffled, axis=0)).mean(axis=0)
        assert (near / far < 0.12).all()


def test_like_lengths_third_field_does_no_harm():
    counts = np.column_stack([two_fields(500).counts, np.arange(500) % 2])
    order = order_by_length(counts, rows=8)
    assert order.tolist() == order_by_length(counts[:, :2], rows=8).tolist()
