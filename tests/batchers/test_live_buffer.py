"""LiveBuffer: each row is batched once, no row starves, and a saved buffer continues where it
stopped."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import compounding

from tests.batchers import strategies
from tests.batchers.corpora import (
    batch_cells,
    lengths_of,
    live,
    one_field,
    order_follows_length,
    padding,
    skewed,
    two_fields,
)
from thincdialog.batchers import Batchsort, Fixed, Lengths, LiveBuffer, Padded, Sizes, Words
from thincdialog.batchers.batcher import Batcher


@given(strategies.lengths(), strategies.batchers())
def test_live_buffer_gives_every_row_once(lengths, batcher):
    batches = live(LiveBuffer(batcher, [0]), lengths)
    limit, _ = batcher.window(0)
    for _, batch in batches:
        assert batch
        if batcher.unit == "rows":
            assert len(batch) <= limit
        elif len(batch) > 1 and batcher.padding is None:
            assert batch_cells(lengths, [batch]) <= [limit]


@pytest.mark.parametrize(
    "batcher, most", [(Batchsort(32, buffer=31), 0.28), (Words(1600), 0.12)], ids=["rows", "words"]
)
def test_live_buffer_pads_little_on_skewed_lengths(batcher, most):
    lengths = skewed()
    for seed in (0, 1):
        feed = np.random.default_rng(seed).permutation(4000).tolist()
        batches = [batch for _, batch in live(LiveBuffer(batcher, [seed]), lengths, feed)]
        assert padding(lengths, batches) <= most


def test_live_buffer_batches_that_are_hardly_filled_wait():
    lengths = two_fields(20_000)
    batches = [batch for _, batch in live(LiveBuffer(Words(4096), [0]), lengths)]
    # With padding as the only criterion there would be 722.
    assert len(batches) < 705


@pytest.mark.parametrize("batcher", [Batchsort(32), Words(4096)], ids=["rows", "words"])
def test_live_buffer_order_does_not_follow_length(batcher):
    lengths = two_fields(20_000)
    batches = [batch for _, batch in live(LiveBuffer(batcher, [0]), lengths)]
    assert len(batches) > 500
    assert abs(order_follows_length(lengths, batches)) < 0.1
    # The length of one batch does not predict that of the next one, either.
    words = lengths.counts.sum(axis=1)
    means = np.array([words[batch].mean() for batch in batches])
    assert abs(np.corrcoef(means[1:], means[:-1])[0, 1]) < 0.15


@pytest.mark.parametrize(
    "batcher", [Batchsort(5, buffer=9), Words(200, buffer=9), Fixed(5)], ids=["sort", "words", "as"]
)
def test_live_buffer_is_deterministic_by_seed(batcher):
    lengths = two_fields(400)

    def run(*seed):
        return [batch for _, batch in live(LiveBuffer(batcher, seed), lengths)]

    assert run(1, 2) == run(1, 2)
    if batcher.needs_lengths:
        assert run(1, 2) != run(1, 3)


class Stream:
    """Feeds a buffer as a world does, and can be stopped at any batch."""

    def __init__(self, batcher, lengths, fed=0):
        self.buffer, self.lengths, self.fed = LiveBuffer(batcher, [5]), lengths, fed

    def fill(self):
        n_rows = len(self.lengths.counts)
        while self.fed < n_rows and (n_missing := self.buffer.missing()):
            rows = range(self.fed, min(n_rows, self.fed + n_missing))
            self.buffer.add(rows, self.lengths.take(np.array(rows)))
            self.fed = rows.stop

    def next(self):
        return self.buffer.next_batch(self.fed < len(self.lengths.counts))

    def rest(self):
        batches = []
        self.fill()
        while len(self.buffer):
            batches.append(self.next())
            self.fill()
        return batches


@settings(max_examples=40)
@given(
    strategies.lengths(words=st.integers(0, 30)),
    st.sampled_from([Batchsort(3, buffer=4), Words(60, buffer=5), Padded(60, buffer=2), Fixed(4)]),
    st.integers(0, 12),
    st.booleans(),
)
def test_live_buffer_continues_where_its_state_was_taken(lengths, batcher, n_batches, is_filled):
    first = Stream(batcher, lengths)
    for _ in range(n_batches):
        first.fill()
        if not len(first.buffer):
            break
        first.next()
    if is_filled:
        first.fill()
    state = json.loads(json.dumps(first.buffer.state()))
    second = Stream(batcher, lengths, fed=first.fed)
    second.buffer.restore(state)
    assert len(second.buffer) == len(first.buffer)
    assert second.buffer.missing() == first.buffer.missing()
    assert second.buffer.state() == first.buffer.state()
    assert second.rest() == first.rest()


def test_live_buffer_state_holds_batches_that_were_chosen_already():
    stream = Stream(Batchsort(3, buffer=8), one_field(200))
    stream.fill()
    stream.next()
    state = stream.buffer.state()
    assert len(state["chosen"]) == 3 and state["waiting"]
    # A buffer that was in use loses its rows.
    other = Stream(Batchsort(3, buffer=8), one_field(200))
    other.fill()
    other.buffer.restore(json.loads(json.dumps(state)))
    other.fed = stream.fed
    assert other.rest() == stream.rest()


@pytest.mark.parametrize("batcher", [Batchsort(8, buffer=20), Words(1000, buffer=20)])
def test_live_buffer_fills_to_about_the_buffer(batcher):
    lengths = one_field(5000)
    stream = Stream(batcher, lengths)
    stream.fill()
    limit, n_batches = batcher.window(0)
    held = lengths.totals[: stream.fed].sum() if batcher.unit == "words" else len(stream.buffer)
    assert limit * n_batches <= held <= limit * n_batches * 1.05
    assert stream.buffer.missing() == 0
    batch = stream.next()
    assert stream.buffer.missing() >= (len(batch) if batcher.unit == "rows" else 1)


@pytest.mark.parametrize("buffer", [1, 3, 16])
def test_live_buffer_is_not_flooded_where_short_rows_are_followed_by_long_ones(buffer):
    # Three short rows for each batch of the buffer; then each row takes up a batch.
    n_short = 3 * buffer
    lengths = lengths_of([(1, 1)] * n_short + [(400, 90)] * 600)
    stream = Stream(Words(500, buffer=buffer), lengths)
    while stream.fed < len(lengths.counts):
        stream.fill()
        assert len(stream.buffer) <= n_short + 2 * n_short
        stream.next()
    batches = live(LiveBuffer(stream.buffer.batcher, [0]), lengths)
    assert max(waited for waited, _ in batches) < 7 * buffer + n_short


def test_live_buffer_returns_waiting_rows_when_there_are_few():
    buffer = LiveBuffer(Batchsort(4, buffer=10), [0])
    buffer.add([7, 3], lengths_of([(1, 1), (2, 2)]))
    buffer.add([], lengths_of([(1, 1)]).take(np.zeros(0, dtype=np.int64)))
    assert len(buffer) == 2
    assert sorted(buffer.next_batch(True)) == [3, 7]
    assert len(buffer) == 0
    with pytest.raises(IndexError, match="no row is waiting"):
        buffer.next_batch(True)


def test_live_buffer_waits_to_fill_a_batch():
    buffer = LiveBuffer(Batchsort(4, buffer=3), [0])
    buffer.add(range(9), lengths_of([(row, 1) for row in range(9)]))
    assert [len(buffer.next_batch(True)) for _ in range(3)] == [4, 4, 1]


def test_live_buffer_keeps_to_a_falling_schedule():
    batcher = Padded(compounding(2000.0, 300.0, 0.995), buffer=64)
    lengths = two_fields(3000)
    lengths = lengths.take(np.flatnonzero(lengths.totals < 300))
    batches = live(LiveBuffer(batcher, [0]), lengths)
    n_cells = batch_cells(lengths, [batch for _, batch in batches])
    assert all(n <= batcher.sizes.at(step) for step, n in enumerate(n_cells))
    assert batcher.sizes.at(len(batches)) == 300


class Threes(Batcher):
    """A batcher that never fills its batches."""

    def plan(self, lengths, limit, rng):
        order = lengths.totals.argsort(kind="stable")
        return [order[start : start + 3] for start in range(0, len(order), 3)]


def test_live_buffer_batcher_that_never_fills_a_batch_chooses_among_many():
    lengths = one_field(600)
    buffer = LiveBuffer(Threes(Sizes(4), buffer=30), [0])
    batches = [batch for _, batch in live(buffer, lengths)]
    assert padding(lengths, batches) < 0.15


def test_live_buffer_lengths_of_other_fields_than_two():
    for padded in [(True,), (True, False, True)]:
        counts = np.random.default_rng(0).integers(0, 40, (300, len(padded)))
        lengths = Lengths(counts, padded)
        batches = live(LiveBuffer(Padded(200, buffer=5), [0]), lengths)
        assert max(batch_cells(lengths, [batch for _, batch in batches])) <= 200
