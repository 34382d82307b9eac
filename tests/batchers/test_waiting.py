"""LiveBuffer: the longest time that a row waits, whatever its length."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import compounding

from tests.batchers.corpora import lengths_of, live
from thincdialog.batchers import Batchsort, LiveBuffer, Padded, Words


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=400),
    st.integers(1, 6),
    st.integers(1, 12),
    st.integers(0, 9),
)
def test_waiting_a_row_waits_for_less_than_seven_buffers(words, size, buffer, seed):
    # The proof is in the docstring of LiveBuffer; it holds for any lengths.
    lengths = lengths_of([(n_words, n_words % 7) for n_words in words])
    batches = live(LiveBuffer(Batchsort(size, buffer=buffer), [seed]), lengths)
    assert max(waited for waited, _ in batches) < 7 * buffer


def test_waiting_a_row_of_a_length_of_its_own_goes_after_five_buffers():
    lengths = lengths_of([(500, 500)] + [(1 + row % 3, 1) for row in range(5000)])
    batches = live(LiveBuffer(Batchsort(4, buffer=8), [0]), lengths)
    (waited,) = [waited for waited, batch in batches if 0 in batch]
    assert 5 * 8 <= waited < 7 * 8


KINDS = ["crossed", "lognormal", "all alike", "one giant", "long at last", "any"]


@st.composite
def unlike_rows(draw):
    """Draw rows that leave gaps in a budget of 100, and whose first rows do not predict the
    others."""
    kind = draw(st.sampled_from(KINDS))
    n_rows = draw(st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    if kind == "crossed":
        is_long = rng.random(n_rows) < draw(st.sampled_from([0.1, 0.5]))
        longest = draw(st.sampled_from([30, 60, 99]))
        rows = [(longest, 1) if long else (1, longest) for long in is_long]
    elif kind == "lognormal":
        rows = np.clip(rng.lognormal(2.0, draw(st.sampled_from([0.5, 1.5])), (n_rows, 2)), 1, 150)
    elif kind == "all alike":
        rows = [(draw(st.integers(0, 60)), 5)] * n_rows
    elif kind == "one giant":
        rows = [(1 + row % 3, 1) for row in range(n_rows)]
        rows[draw(st.integers(0, n_rows - 1))] = (5000, 90)
    elif kind == "long at last":
        rows = [(1, 1)] * draw(st.integers(1, 60)) + [(60, 30)] * n_rows
    else:
        rows = draw(st.lists(st.tuples(st.integers(0, 120), st.integers(0, 9)), min_size=1))
    return lengths_of(np.array(rows).astype(np.int64))


BUDGETS = {
    "same": lambda: 100,
    "falling": lambda: compounding(400.0, 100.0, 0.98),
    "rising": lambda: compounding(20.0, 400.0, 1.05),
    "jumps": lambda: itertools.cycle([100, 100, 400, 30]),
}


def waits(buffer, lengths, goes_on):
    """Return for each row how many batches it waited, and the size of the buffer when it was added.

    goes_on (bool): Whether each row in a batch is followed by another one, as in conversations
        that continue, even if the buffer needs none.
    """
    came, found, n_fed, n_rows = {}, [], 0, len(lengths.counts)
    n_gone = 0
    while n_fed < n_rows or len(buffer):
        first = n_fed
        while n_fed < n_rows and (n_new := max(n_gone, buffer.missing())):
            rows = range(n_fed, min(n_rows, n_fed + n_new))
            buffer.add(rows, lengths.take(np.array(rows)))
            n_fed, n_gone = rows.stop, 0
        came.update(dict.fromkeys(range(first, n_fed), (buffer.step, len(buffer))))
        step, batch = buffer.step, buffer.next_batch(n_fed < n_rows)
        found += [(step - came[row][0], came[row][1]) for row in batch]
        n_gone = len(batch) if goes_on else 0
    assert len(found) == n_rows
    return found


@pytest.mark.slow
@settings(max_examples=200)
@given(
    unlike_rows(),
    st.integers(1, 3),
    st.sampled_from(sorted(BUDGETS)),
    st.booleans(),
    st.integers(0, 9),
)
def test_waiting_word_budgets_hold_their_bound(lengths, buffer, budget, goes_on, seed):
    # The proof is in the docstring of LiveBuffer.
    for make in (Words, Padded):
        live_buffer = LiveBuffer(make(BUDGETS[budget](), buffer=buffer), [seed])
        for waited, n_rows in waits(live_buffer, lengths, goes_on):
            assert waited < 7 * buffer + n_rows


@pytest.mark.parametrize("buffer", [1, 3])
def test_waiting_of_conversations_that_grow_long_is_in_turn(buffer):
    # At first, fifty conversations fit into a batch; soon each takes up a whole batch.
    lengths = lengths_of([(1, 1)] * 50 * buffer + [(60, 30)] * 500 * buffer)
    found = waits(LiveBuffer(Words(100, buffer=buffer), [0]), lengths, goes_on=True)
    assert max(n_rows for _, n_rows in found) == 50 * buffer
    most = max(waited for waited, _ in found)
    assert 50 * buffer - 1 <= most < 57 * buffer


def test_waiting_those_that_are_due_go_in_random_order_within_their_round():
    buffer = LiveBuffer(Words(100, buffer=8), [0])
    for row in range(200):
        buffer.add([row], lengths_of([(60, 30)]))
        buffer.step += 1
    buffer.next_batch(True)
    rows = [row for slots, *_ in buffer.state()["chosen"] for row in slots]
    assert set(rows) < set(range(8)) and len(rows) == 7
    assert sorted(rows) != rows != sorted(rows, reverse=True)
