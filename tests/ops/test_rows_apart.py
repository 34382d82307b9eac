"""Rows apart: copies are those of the tokens, changes come back, others' stay."""

import copy
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.ops.compiled import load_kernels
from thincdialog.ops.rows_apart import RowsApart, Tokens

pytest.importorskip("numba")
WIDTH, N_FIRST, N_SECOND = 5, 7, 4
SECOND = 48  # The second table; some floats between them belong to neither.
# The same for all examples: nothing may be left of one in the next.
ROOMS = {least: RowsApart(least) for least in (0, 1, 2, 5)}  # 0: never.
KERNELS = load_kernels("apart")

ids = {n: st.lists(st.integers(0, n - 1), max_size=12) for n in (N_FIRST, N_SECOND)}


@given(
    first=ids[N_FIRST],
    second=ids[N_SECOND],
    again=ids[N_FIRST],
    adagrad=st.booleans(),
    least=st.sampled_from(list(ROOMS)),
)
@settings(max_examples=100)
def test_rows_apart_come_and_go(first, second, again, adagrad, least):
    rng = np.random.default_rng(0)
    values = rng.normal(size=80).astype("f")
    squares = rng.random(80 if adagrad else 0).astype("f")
    before, squares_before = values.copy(), squares.copy()
    tables = [
        Tokens(0, N_FIRST, np.array(first, dtype="i")),
        Tokens(SECOND, N_SECOND, np.array(second, dtype="i"), uses=2),
        Tokens(0, N_FIRST, np.array(again, dtype="i")),
    ]
    uses = Counter()
    for table, _, tokens, each in tables:
        for token in tokens.tolist():
            uses[table + token * WIDTH] += each
    often = {at for at, n in uses.items() if least and n >= least}
    weights, places = ROOMS[least].prepare(values, squares, WIDTH, tables)
    taken = KERNELS.take(weights, places)
    rows, sums = weights.all_values, weights.all_squares
    assert rows[weights.starts[0] :][:80].tolist() == values.tolist()
    copies = {}
    for (table, _, tokens, _), found in zip(tables, places):
        for token, place, square_at in zip(tokens.tolist(), found.at, found.squares_at):
            at = table + token * WIDTH
            row = rows[place : place + WIDTH]
            assert np.shares_memory(row, values[at : at + WIDTH]) == (at not in often)
            assert row.tolist() == values[at : at + WIDTH].tolist()
            assert copies.setdefault(at, (place, square_at)) == (place, square_at)
            if adagrad:
                assert sums[square_at] == squares[at]
        assert not found.slots.any()
    assert len({place for place, _ in copies.values()}) == len(copies)
    assert sorted(taken.tolist()) == sorted(often)
    for at in often:
        place, square_at = copies[at]
        rows[place : place + WIDTH] += 1
        if adagrad:
            sums[square_at] += 2
    values += 10  # Somebody else learns, too.
    squares += 20
    KERNELS.put_back(weights, taken)
    expected, expected_squares = before + 10, squares_before + 20
    for at in often:
        expected[at : at + WIDTH] += 1
        if adagrad:
            expected_squares[at] += 2
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    np.testing.assert_allclose(squares, expected_squares, rtol=1e-6)


def test_rows_apart_of_a_row_that_is_needed_more_often_than_an_int32_counts():
    values, tokens = np.arange(10, dtype="f"), np.ones(3, dtype="i")
    nothing = np.zeros(0, dtype="f")
    needed = [Tokens(0, 2, tokens, uses=2**30)]
    weights, (found,) = RowsApart(4).prepare(values, nothing, WIDTH, needed)
    taken = KERNELS.take(weights, (found,))
    (place,) = set(found.at.tolist())
    assert weights.all_values[place : place + WIDTH].tolist() == [5, 6, 7, 8, 9]
    weights.all_values[place] = 50
    KERNELS.put_back(weights, taken)
    assert values.tolist() == [0, 1, 2, 3, 4, 50, 6, 7, 8, 9]


@pytest.mark.parametrize("n_squares", [0, 80])
def test_rows_apart_keep_their_room_for_the_same_weights(n_squares):
    values, squares = np.zeros(80, dtype="f"), np.zeros(n_squares, dtype="f")
    room = RowsApart(1)

    def prepare(values, squares, n_tokens):
        needed = [Tokens(0, N_FIRST, np.zeros(n_tokens, dtype="i"))]
        weights, _ = room.prepare(values, squares, WIDTH, needed)
        assert weights.values is values and weights.rows.ctypes.data % 64 == 0
        return weights

    first = prepare(values, squares, 3)
    assert prepare(values, squares, 2) is first
    assert len(prepare(values, squares, N_FIRST).rows) > len(first.rows)
    other = prepare(values.copy(), squares, 3)
    assert other is not first
    if n_squares:
        assert prepare(other.values, squares + 1, 3).squares[0] == 1


def test_rows_apart_of_a_larger_model_and_a_copy():
    room, nothing = RowsApart(1), np.zeros(0, dtype="f")
    for n_rows in (N_FIRST, 3 * N_FIRST):
        values = np.zeros(n_rows * WIDTH, dtype="f")
        needed = [Tokens(0, n_rows, np.full(2, n_rows - 1, dtype="i"))]
        for _ in range(2):
            weights, (found,) = room.prepare(values, nothing, WIDTH, needed)
            assert len(found.slots) == n_rows
        assert KERNELS.take(weights, (found,)).tolist() == [(n_rows - 1) * WIDTH]
    for other in (copy.deepcopy(room), pickle.loads(pickle.dumps(room))):
        assert other.least == 1 and other.__dict__ == RowsApart(1).__dict__
