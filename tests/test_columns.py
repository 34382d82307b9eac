import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thincdialog.columns import LazyColumn, PickedColumn, RowNumbers, choose, derive


class Data:
    def __init__(self, **columns):
        self.columns = columns

    def pick(self, rows, *names):
        rows = np.array(rows, dtype=np.int64)
        return [PickedColumn(self.columns[name], rows, self, name) for name in names]


DATA = st.lists(st.text(max_size=3), min_size=1, max_size=20)


@given(DATA, st.data())
def test_picked_column_is_the_list_of_its_cells(words, draw):
    places = st.integers(0, len(words) - 1)
    rows = draw.draw(st.lists(places, max_size=8))
    cells = [words[row] for row in rows]
    (column,) = Data(word=words).pick(rows, "word")
    assert len(column) == len(cells) and list(column) == cells and column == cells
    assert column[1:] == cells[1:] and [column[i] for i in range(-len(cells), 0)] == cells
    assert repr(column) == repr(cells) and (column != [*cells, "x"])
    others = draw.draw(st.lists(places, max_size=8))
    assert column.take(np.array(others, dtype=np.int64)) == [words[row] for row in others]


def test_derived_column_is_made_at_first_need_and_once():
    calls = []

    def both(words, numbers):
        calls.append(1)
        return [f"{word}{number}" for word, number in zip(words, numbers)]

    data = Data(word=["a", "b", "c"], number=[1, 2, 3])
    column = derive("both", both, *data.pick([2, 0], "word", "number"))
    assert isinstance(column, LazyColumn) and len(column) == 2 and not calls
    assert column[0] == "c3" and list(column) == ["c3", "a1"] and len(calls) == 1


@pytest.mark.parametrize("case", ["a list", "other rows", "other data"])
def test_columns_derived_from_different_rows_are_plain_lists(case):
    data, other = Data(word=["a", "b"], number=[1, 2]), Data(number=[1, 2])
    (words,) = data.pick([1, 0], "word")
    numbers = {
        "a list": [2, 1],
        "other rows": data.pick([1, 0], "number")[0],
        "other data": other.pick([1, 0], "number")[0],
    }[case]
    column = derive("pairs", lambda *cells: list(zip(*cells)), words, numbers)
    assert column == [("b", 2), ("a", 1)] and isinstance(column, list)


def test_what_is_derived_of_cells_that_somebody_may_have_changed_is_a_plain_list():
    first = lambda lists: [each[0] for each in lists]  # noqa: E731
    (words,) = Data(word=["a", "b"]).pick([1, 0], "word")
    lists = derive("lists", lambda cells: [[cell] for cell in cells], words)
    assert isinstance(derive("first", first, lists), LazyColumn)
    lists[0][0] = "changed"
    column = derive("first", first, lists)
    assert column == ["changed", "a"] and isinstance(column, list)


@given(DATA, st.data())
def test_chosen_cells_know_their_rows_if_they_are_of_the_data(words, draw):
    rows = draw.draw(st.lists(st.integers(0, len(words) - 1), min_size=1, max_size=8))
    places = np.array(draw.draw(st.lists(st.integers(0, len(rows) - 1))), dtype=np.int64)
    (column,) = Data(word=words).pick(rows, "word")
    chosen = choose(column, places)
    assert list(chosen) == choose(list(column), places) == [words[rows[at]] for at in places]
    assert isinstance(chosen, PickedColumn)
    assert chosen.origin.rows.tolist() == [rows[at] for at in places]


@given(DATA, st.lists(st.lists(st.integers(0, 100), max_size=8), max_size=5))
def test_row_numbers_are_computed_once_for_each_row(words, batches):
    data, seen = Data(word=words), []

    def lengths(cells):
        seen.extend(cells)
        return [len(cell) for cell in cells]

    numbers = RowNumbers()
    shown = set()
    for batch in batches:
        rows = [row % len(words) for row in dict.fromkeys(row % len(words) for row in batch)]
        (column,) = data.pick(rows, "word")
        expected = [len(words[row]) for row in rows]
        assert numbers.of(column, lengths).tolist() == expected
        assert numbers.of([words[row] for row in rows], lambda x: list(map(len, x))).tolist() == (
            expected
        )
        shown |= set(rows)
    assert sorted(seen) == sorted(words[row] for row in shown)


def test_row_numbers_tell_columns_and_data_apart():
    one, other = Data(x=["a"], y=["bb"]), Data(x=["ccc"])
    numbers = RowNumbers()

    def of(column):
        return numbers.of(column, lambda cells: [len(cell) for cell in cells]).tolist()

    (x, y), (z,) = one.pick([0], "x", "y"), other.pick([0], "x")
    twice = derive("twice", lambda cells: [2 * cell for cell in cells], y)
    assert [of(x), of(y), of(z), of(twice)] == [[1], [2], [3], [4]]


def test_row_numbers_do_not_keep_the_data():
    data = Data(word=["a"])
    numbers = RowNumbers()
    assert numbers.of(data.pick([0], "word")[0], lambda cells: [0]).tolist() == [0]
    gone = weakref.ref(data)
    del data
    gc.collect()
    assert gone() is None
