"""Lengths: the cells of rows, and a measure for agents that have none."""

import numpy as np
from hypothesis import given

from tests.batchers import strategies
from tests.batchers.corpora import cells, lengths_of
from thincdialog.batchers import Lengths, count_words
from thincdialog.messages import PARTNER, SELF, Message, MessageBatch


def test_lengths_totals_are_at_least_one_and_cells_of_no_rows_none():
    assert lengths_of([(0, 0), (3, 0), (2, 5)]).totals.tolist() == [1, 3, 7]
    assert Lengths(np.zeros((0, 2), dtype=np.int64), (True, True)).cells() == 0


def test_lengths_take_keeps_order_and_fields():
    taken = lengths_of([(1, 2), (3, 4), (5, 6)], (True, False)).take(np.array([2, 0]))
    assert taken.counts.tolist() == [[5, 6], [1, 2]]
    assert taken.padded == (True, False)


@given(strategies.lengths())
def test_lengths_cells_are_rectangles_of_padded_fields_and_words_of_others(lengths):
    assert lengths.cells() == max(1, cells(lengths.counts.tolist(), lengths.padded))


def test_lengths_count_words_of_context_text_and_first_label():
    messages = [
        Message(text="one two  three\n", labels=["a b", "a b c d"]),
        Message(text="x", context=((PARTNER, "two words"), (SELF, "y")), labels=()),
        Message(text=""),
        Message(labels=["lonely"]),
    ]
    lengths = count_words(messages)
    assert lengths.counts.tolist() == [[3, 2], [4, 0], [0, 0], [0, 1]]
    assert lengths.padded == (True, True)
    names = ("text", "context", "labels")
    columns = {name: [message.get(name) for message in messages] for name in names}
    assert count_words(MessageBatch(columns, 4)).counts.tolist() == lengths.counts.tolist()


def test_lengths_count_words_of_nothing():
    assert count_words([]).counts.shape == (0, 2)
    assert count_words(MessageBatch({}, 2)).counts.tolist() == [[0, 0], [0, 0]]
