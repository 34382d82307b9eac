"""Cuts of a line, compared with naive loops, and with all possible cuts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.batchers.corpora import batch_cells, cells, lengths_of, two_fields
from thincdialog.batchers import cuts
from thincdialog.batchers.cuts import cut_line, cut_sorted
from thincdialog.batchers.like_lengths import order_by_length

BUDGET = 40


@st.composite
def sorted_rows(draw, max_rows=40):
    """Draw rows of two fields, none empty or over the budget, in falling order of the padded
    field."""
    padded = draw(st.sampled_from([(True, False), (False, True), (False, False)]))
    field = st.integers(0, BUDGET // 2)
    rows = draw(st.lists(st.tuples(field, field), min_size=1, max_size=max_rows))
    rows = [row if sum(row) else (1, 0) for row in rows]
    rows.sort(key=lambda row: -sum(n for n, is_padded in zip(row, padded) if is_padded))
    return rows, padded


@given(sorted_rows())
def test_cuts_sorted_is_the_greedy_loop(drawn):
    rows, padded = drawn
    expected, start = [0], 0
    for row in range(len(rows)):
        if cells(rows[start : row + 1], padded) > BUDGET:
            start = row
            expected.append(row)
    assert cut_sorted(np.array(rows), padded, BUDGET) == [*expected, len(rows)]


def partitions(rows):
    """Yield every way to divide rows into batches."""
    if not rows:
        yield []
        return
    for rest in partitions(rows[1:]):
        yield [[rows[0]], *rest]
        for number in range(len(rest)):
            yield [*rest[:number], [rows[0], *rest[number]], *rest[number + 1 :]]


@settings(max_examples=20)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=7))
def test_cuts_sorted_of_one_padded_field_are_the_fewest_possible(words):
    words.sort(reverse=True)
    fewest = min(
        len(parts)
        for parts in partitions(words)
        if all(len(part) * max(part) <= BUDGET for part in parts)
    )
    assert len(cut_sorted(np.array(words)[:, None], [True], BUDGET)) - 1 == fewest


def cost(rows, edges, padded, budget):
    """Return the cost of the cuts. Check that they cover the line and keep within the budget."""
    assert edges[0] == 0 and edges[-1] == len(rows) and edges == sorted(set(edges))
    parts = [rows[start:stop] for start, stop in zip(edges, edges[1:])]
    assert all(cells(part, padded) <= budget for part in parts)
    return sum(cells(part, padded) for part in parts) + cuts.OVERHEAD * budget * len(parts)


def cheapest(rows, padded, budget):
    """Return the least cost of all possible cuts, by dynamic programming."""
    totals = [0.0]
    for stop in range(1, len(rows) + 1):
        ways = []
        for start in range(stop):
            n_cells = cells(rows[start:stop], padded)
            if n_cells <= budget:
                ways.append(totals[start] + n_cells + cuts.OVERHEAD * budget)
        totals.append(min(ways))
    return totals[-1]


PADDED = [(True, True), (True, True, False), (True, True, True), (False, True, True)]


@st.composite
def line(draw, longest=10, shortest=0):
    padded = draw(st.sampled_from(PADDED))
    field = st.integers(shortest, longest)
    rows = draw(st.lists(st.tuples(*[field] * len(padded)), min_size=1, max_size=30))
    return [row if sum(row) else (1, *row[1:]) for row in rows], padded


@given(line(shortest=2))
def test_cuts_line_is_exact_where_each_row_is_a_block(drawn):
    rows, padded = drawn  # No row is shorter than a twelfth of the budget.
    edges = cut_line(np.array(rows), padded, BUDGET)
    assert cost(rows, edges, padded, BUDGET) == pytest.approx(cheapest(rows, padded, BUDGET))


@given(line(longest=60), st.integers(180, 2000))
def test_cuts_line_of_blocks_keeps_the_budget(drawn, budget):
    rows, padded = drawn
    cost(rows, cut_line(np.array(rows), padded, budget), padded, budget)


@given(line(longest=8, shortest=2), st.integers(1, 7))
def test_cuts_line_in_sections_covers_all_rows(drawn, n_blocks):
    rows, padded = drawn
    before = cuts.BLOCKS_PER_SECTION
    cuts.BLOCKS_PER_SECTION = n_blocks
    try:
        edges = cut_line(np.array(rows), padded, BUDGET)
    finally:
        cuts.BLOCKS_PER_SECTION = before
    cost(rows, edges, padded, BUDGET)


def test_cuts_line_of_a_long_line_is_near_the_exact_one():
    lengths = two_fields(1500)
    line = lengths.counts[order_by_length(lengths.counts, cells=4096)]
    edges = cut_line(line, (True, True), 4096)
    assert len(edges) > 20
    n_cells = batch_cells(lengths_of(line), [range(*pair) for pair in zip(edges, edges[1:])])
    assert max(n_cells) <= 4096
    # The dynamic program in arrays; without them it takes minutes.
    totals = np.zeros(len(line) + 1)
    for stop in range(1, len(line) + 1):
        starts = np.arange(max(0, stop - 600), stop)
        widest = np.maximum.accumulate(line[starts][::-1])[::-1].sum(axis=1)
        taken = widest * (stop - starts)
        totals[stop] = np.where(taken <= 4096, totals[starts] + taken + 409.6, np.inf).min()
    found = sum(n_cells) + 409.6 * len(n_cells)
    assert totals[-1] <= found + 1e-6 and found < totals[-1] * 1.02


def test_cuts_line_of_unlike_rows_in_huge_batches():
    # Blocks of rows that do not fit together are halved, not split row by row.
    rng = np.random.default_rng(0)
    few = rng.integers(1, 1000, (200, 2))
    line = rng.permutation(np.concatenate([np.ones((50_000, 2), dtype=np.int64), few]))
    edges = cut_line(line, (True, True), 100_000)
    n_cells = batch_cells(lengths_of(line), [range(*pair) for pair in zip(edges, edges[1:])])
    assert max(n_cells) <= 100_000
