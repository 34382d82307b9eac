"""Rows apart: copies are those of the tokens, changes come back, others' stay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.ops.rows_apart import RowsApart

pytest.importorskip("numba")
WIDTH, N_FIRST, N_SECOND = 5, 7, 4
SECOND = 48  # The second table; some floats between them belong to neither.
ROOM = RowsApart()  # The same for all examples: nothing may be left of one in the next.

ids = {n: st.lists(st.integers(0, n - 1), max_size=12) for n in (N_FIRST, N_SECOND)}


@given(first=ids[N_FIRST], second=ids[N_SECOND], again=ids[N_FIRST], adagrad=st.booleans())
@settings(max_examples=60)
def test_rows_apart_come_and_go(first, second, again, adagrad):
    rng = np.random.default_rng(0)
    values = rng.normal(size=80).astype("f")
    squares = rng.random(80 if adagrad else 0).astype("f")
    before, squares_before = values.copy(), squares.copy()
    tables = [
        (0, N_FIRST, np.array(first, dtype="i")),
        (SECOND, N_SECOND, np.array(second, dtype="i")),
        (0, N_FIRST, np.array(again, dtype="i")),
    ]
    copies, sums, numbers = ROOM.take(values, squares, WIDTH, tables)
    distinct = {(table, row) for table, _, rows in tables for row in rows.tolist()}
    assert len(copies) == WIDTH * len(distinct)
    rows = copies.reshape(-1, WIDTH)
    number_of = {}
    for (table, _, tokens), mine in zip(tables, numbers):
        for token, number in zip(tokens.tolist(), mine.tolist()):
            at = table + token * WIDTH
            assert number_of.setdefault(at, number) == number
            assert rows[number].tolist() == values[at : at + WIDTH].tolist()
            if adagrad:
                assert sums[number * WIDTH] == squares[at]
    rows += 1
    sums[::WIDTH] += 2
    values += 10  # Somebody else learns, too.
    squares += 20
    ROOM.put_back(values, squares)
    expected, expected_squares = before + 10, squares_before + 20
    for at in number_of:
        expected[at : at + WIDTH] += 1
        if adagrad:
            expected_squares[at] += 2
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    np.testing.assert_allclose(squares, expected_squares, rtol=1e-6)
