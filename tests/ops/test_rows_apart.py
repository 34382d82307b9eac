"""RowsApart: each row of a token has one copy, its changes are written back, and the changes of
others are kept."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.ops.compiled import load_kernels
from thincdialog.ops.rows_apart import RowsApart, Tokens

pytest.importorskip("numba")
KERNELS = load_kernels("apart")
meet, rows_of, sums_of = KERNELS.meet, KERNELS.rows_of, KERNELS.sums_of
floats_at, kernel = load_kernels("vectors").floats_at, load_kernels("kernel").kernel
WIDTH, N_FIRST, N_SECOND = 5, 7, 4
SECOND = 48  # Offset of the second table; a few floats between the tables belong to neither.
SIZE = 80


@kernel
def learn(copies, tables):
    """Add 1, 2, 3, ... to the rows of tokens, one after another, and ten times that to sums of
    squares."""
    number = 0
    for tokens in tables:
        rows = rows_of(tokens, copies.width)
        sums = sums_of(tokens, copies.width)
        for t in range(len(rows)):
            number += 1
            row = floats_at(rows[t], copies.width)
            for j in range(copies.width):
                row[j] += number
            if len(copies.squares):
                floats_at(sums[t], 1)[0] += 10 * number
    meet(copies)


def ids_below(n):
    return st.lists(st.integers(0, n - 1), max_size=12)


batches = st.lists(st.tuples(*map(ids_below, (N_FIRST, N_SECOND, N_FIRST))), max_size=4)


def tables_of(batch):
    first, second, again = (np.array(ids, dtype="i") for ids in batch)
    return [Tokens(0, first), Tokens(SECOND, second, uses=2), Tokens(0, again)]


def places_of(tables):
    """Return the offset of each token's row."""
    return [table + int(row) * WIDTH for table, ids, _ in tables for row in ids]


def frequent(tables, least):
    uses = Counter()
    for each in tables:
        for at in places_of([each]):
            uses[at] += each.uses
    return sorted(at for at, n in uses.items() if n >= least)


# With 4 entries, some rows cannot have a copy.
@pytest.mark.slow
@given(
    batches=batches,
    adagrad=st.booleans(),
    least=st.sampled_from([0, 1, 2, 5]),
    n_entries=st.sampled_from([4, RowsApart.N_ENTRIES]),
)
@settings(max_examples=100)
def test_rows_apart_train_as_directly_in_the_weights(batches, adagrad, least, n_entries):
    values = np.arange(SIZE, dtype="f")  # Whole numbers, so that sums are exact in any order.
    squares = np.arange(SIZE if adagrad else 0, dtype="f")
    expected, expected_squares = values.copy(), squares.copy()
    room = RowsApart(least)
    room.EVERY, room.N_ENTRIES = 2, n_entries
    for batch in batches:
        tables = tables_of(batch)
        learn(*room.prepare(values, squares, WIDTH, tables))
        for number, at in enumerate(places_of(tables), start=1):
            expected[at : at + WIDTH] += number
            if adagrad:
                expected_squares[at] += 10 * number
        assert values.tolist() == expected.tolist()
        assert squares.tolist() == expected_squares.tolist()


@given(batches=batches, adagrad=st.booleans(), least=st.sampled_from([1, 2, 5]))
def test_rows_apart_keep_the_changes_of_others(batches, adagrad, least):
    values = np.zeros(SIZE, dtype="f")
    squares = np.zeros(SIZE if adagrad else 0, dtype="f")
    expected, expected_squares = values.copy(), squares.copy()
    room = RowsApart(least)
    room.EVERY = 2
    for number, batch in enumerate(batches):
        tables = tables_of(batch)
        copies, _ = room.prepare(values, squares, WIDTH, tables)
        if number % 2 == 0:
            chosen = frequent(tables, least)
        assert sorted(copies.places.tolist()) == chosen
        values += 10  # Others have trained since this worker's last batch.
        meet(copies)
        for row, at in zip(copies.rows[0], copies.places):
            assert row.tolist() == values[at : at + WIDTH].tolist()
        copies.rows[0] += 1
        copies.sums[0] += 2
        values += 100  # Others train while this worker trains on this batch.
        squares += 1000
        meet(copies)
        expected += 110
        expected_squares += 1000
        for at in chosen:
            expected[at : at + WIDTH] += 1
            if adagrad:
                expected_squares[at] += 2
        assert values.tolist() == expected.tolist()
        assert squares.tolist() == expected_squares.tolist()


def test_rows_apart_copy_what_one_batch_in_16_needs_often():
    values, nothing, room = np.zeros(SIZE, dtype="f"), np.zeros(0, dtype="f"), RowsApart(2)
    found = []
    for number in range(33):
        row = number % N_FIRST
        copies, _ = room.prepare(values, nothing, WIDTH, tables_of(([row, row, 6 - row], [], [])))
        assert copies.rows.ctypes.data % 64 == 0
        found.append(copies.places.tolist())
    first, second, third = [0], [16 % N_FIRST * WIDTH], [32 % N_FIRST * WIDTH]
    assert found == [first] * 16 + [second] * 16 + [third]


@pytest.mark.slow
def test_rows_apart_of_a_row_that_is_needed_more_often_than_an_int32_counts():
    values, tokens = np.arange(10, dtype="f"), np.ones(3, dtype="i")
    needed = [Tokens(0, tokens, uses=2**30)]
    copies, _ = RowsApart(4).prepare(values, np.zeros(0, dtype="f"), WIDTH, needed)
    assert copies.places.tolist() == [WIDTH]
