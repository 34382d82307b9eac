"""Batches that a batcher chooses: seeded order, windows, schedules, oversize."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.talk import answer_batch, batches_left, make_teacher, whole_batches
from thincdialog.batchers import (
    Batcher,
    Batchsort,
    Fixed,
    Lengths,
    Padded,
    Sizes,
    Words,
    count_words,
)
from thincdialog.errors import DataError, ProtocolError
from thincdialog.mutators.flatten import Flatten
from thincdialog.teachers import IterableTeacher


def test_windows_an_example_waits_no_longer_than_its_window():
    teacher = make_teacher([1] * 100, training=False)
    teacher.set_batches(Batchsort(4, buffer=5))
    batches = batches_left(teacher)
    for start in range(0, 100, 20):
        window = sum(batches[start // 4 : start // 4 + 5], [])
        assert sorted(window) == sorted(f"{n}/0" for n in range(start, start + 20))


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 200), st.integers(1, 60), st.lists(st.integers(1, 60)), st.integers(1, 4))
def test_windows_window_of_words_is_bounded_whatever_its_rows(n_short, longest, others, buffer):
    # The lengths of the first, short rows say little about the long rows that follow.
    n_words = [1] * n_short + [longest] * 200 + others
    read = []

    def measure(batch):
        read.extend(n_words[int(name.split("/")[0])] for name in batch.ids())
        return Lengths(numpy.array(read[-len(batch) :])[:, None], (True,))

    data = [[("text", "label")] for _ in n_words]
    made = IterableTeacher({"test": data}, mutators=[Flatten()]).for_split("test")
    made.set_batches(Words(60, buffer=buffer), measure)
    start = 0
    while not made.epoch_done():
        read.clear()
        answer_batch(made)
        if read:  # A window begins.
            assert read == n_words[start : start + len(read)]
            n_held = int((numpy.cumsum(read) <= 60 * buffer).sum())
            assert len(read) <= 2 * max(n_held, buffer)
            start += len(read)
    assert start == len(n_words)


@pytest.mark.parametrize("batcher", [Batchsort(8, 32), Words(200, True, 32), Padded(200, 32)])
def test_windows_order_does_not_follow_length(batcher):
    rng = numpy.random.default_rng(0)
    n_words = numpy.minimum(rng.lognormal(2.5, 0.8, 6000).astype(int) + 1, 90)
    data = [[("w " * int(n), "yes")] for n in n_words]
    teacher = IterableTeacher({"train": data}).for_split("train", training=True)
    teacher.set_batches(batcher)
    means, totals = [], []
    for batch in whole_batches(teacher):
        counts = count_words(batch).counts[:, 0]
        means.append(counts.mean())
        totals.append(counts.sum())
    # Every row was shown, and long rows came neither earlier nor later than short ones.
    assert sum(totals) == n_words.sum()
    assert abs(numpy.corrcoef(numpy.arange(len(means)), means)[0, 1]) < 0.15
    half = len(totals) // 2
    assert 0.8 < sum(totals[:half]) / sum(totals[half:]) < 1.25


def test_windows_measure_every_row_once_and_fixed_none():
    measured = []

    def measure(batch):
        measured.extend(batch.ids())
        return count_words(batch)

    teacher = make_teacher([1] * 3000)
    for batcher, expected in ((Fixed(64), 0), (Words(50), 3000), (Batchsort(64, 3), 3000)):
        measured.clear()
        teacher.start_epoch(0, 0)
        teacher.set_batches(batcher, measure)
        batches_left(teacher)
        assert len(measured) == len(set(measured)) == expected


@pytest.mark.parametrize("end", [1, 8])
def test_windows_follow_a_schedule_through_windows_and_epochs(end):
    # Sizes 1 ... 8 or 8 ... 1 over 24 batches, then the last size for ever.
    first = 9 - end

    def schedule():
        step = 0
        while True:
            yield first + (end - first) * min(step, 24) // 24
            step += 1

    values = [size for _, size in zip(range(60), schedule())]
    for make in (lambda: Fixed(schedule()), lambda: Batchsort(schedule(), 16)):
        teacher = make_teacher([1] * 50)
        teacher.set_batches(make())
        n_rows = []
        for epoch in range(3):
            teacher.start_epoch(epoch, 0)
            n_rows.extend(len(batch) for batch in batches_left(teacher))
        assert sum(n_rows) == 150
        # A batch is never larger than allowed at its step.
        assert all(got <= allowed for got, allowed in zip(n_rows, values + [end] * 150))
        assert max(n_rows) == 8


def test_windows_keep_to_a_falling_budget_with_more_batches_than_planned():
    # Later budgets rarely have room for two of these rows, so a window gives nearly twice as many
    # batches as planned.
    schedule = [max(110, 200 - step) for step in range(400)]
    batcher = Words(iter(schedule), buffer=64)
    data = [[("a " * (52 + n % 40), "x " * (n % 7))] for n in range(300)]
    teacher = IterableTeacher({"train": data}).for_split("train", training=True)
    teacher.set_batches(batcher)
    n_cells = [count_words(batch).cells() for batch in whole_batches(teacher)]
    assert len(n_cells) > 200
    assert all(n <= most for n, most in zip(n_cells, schedule))


def test_windows_order_differs_from_window_to_window():
    teacher = make_teacher([1] * 80, training=False)
    alike = Lengths(numpy.ones((10, 1), dtype=numpy.int64), (True,))
    teacher.set_batches(Batchsort(1, buffer=10), lambda batch: alike)
    ids = [int(batch[0].split("/")[0]) for batch in batches_left(teacher)]
    orders = [tuple(n % 10 for n in ids[start : start + 10]) for start in range(0, 80, 10)]
    assert len(set(orders)) == 8


def test_windows_oversize_error_names_data_example_and_fix():
    data = [[("short", "x")], [("far too long for this " * 3, "x")]]
    made = IterableTeacher({"test": data}, mutators=[Flatten()], task="quotes")
    teacher = made.for_split("test")
    teacher.set_batches(Words(10, oversize="error"))
    with pytest.raises(DataError) as error:
        teacher.batch_act()
    for part in (
        "quotes/test",
        "'1/0' has 15 words",
        "but a whole batch holds 10:",
        "budget",
        "alone",
    ):
        assert part in str(error.value)


def test_windows_truncated_rows_have_max_tokens():
    data = [[("a b c", "x y")], [("a " * 30, "x " * 8)], [("a b", "x")]]
    teacher = IterableTeacher({"train": data}).for_split("train", training=True)
    teacher.set_batches(Words(20, padding=False, oversize="truncate"))
    told = {}
    n_columns = []
    for batch in whole_batches(teacher):
        n_columns.append("max_tokens" in batch.names())
        told.update((row["id"], row.get("max_tokens")) for row in batch)
    assert told == {"0/0": None, "1/0": (12, 8), "2/0": None}
    assert sorted(n_columns) == [False, True]


def test_windows_of_a_custom_batcher_are_checked():
    class Forgetful(Batcher):
        def plan(self, lengths, limit, rng):
            return [numpy.arange(len(lengths.counts) - 1)]

    teacher = make_teacher([1] * 5)
    teacher.set_batches(Forgetful(Sizes(3)))
    with pytest.raises(ProtocolError, match=r"Forgetful.plan\(\) must return every row"):
        teacher.batch_act()


def lengths_without_padding(batch):
    return Lengths(count_words(batch).counts, (False, False))


@pytest.mark.parametrize("batcher", [Batchsort(8, 256), Words(200)])
def test_windows_without_padding_add_labels_of_any_length_as_choices(batcher):
    """Otherwise the length of a reply would show a ranker which one is right."""
    rng = numpy.random.default_rng(0)
    data = [[("a " * 5, "b " * int(n))] for n in rng.integers(1, 30, 2000)]
    del data[7]
    data[9] = [{"text": "no label"}]
    teacher = IterableTeacher({"train": data}).for_split("train", training=True)
    teacher.set_batches(batcher, lengths_without_padding)
    shown, spreads = [], []
    for _ in range(2):
        batches = []
        teacher.start_epoch(0, 3)
        while not teacher.epoch_done():
            batch = teacher.batch_act()
            teacher.batch_observe([{}] * len(batch))
            own, choices = batch.labelled(), batch.choices
            assert batch.labelled().choices is choices
            assert choices.rows[: len(own)].tolist() == own.rows.tolist()
            assert len(choices) <= len(batch) + -(-len(batch) // 4)
            lengths = numpy.array([len(text.split()) for text in choices.first_labels()])
            spreads.append((numpy.ptp(lengths[: len(own)]), numpy.ptp(lengths)))
            batches.append(choices.ids())
        shown.append(batches)
    assert shown[0] == shown[1]
    alike, all_lengths = numpy.mean(spreads, axis=0)
    assert alike < 8 and all_lengths > 14


def test_windows_a_padded_budget_leaves_no_room_for_other_labels():
    data = [[("a", "b " * n)] for n in range(1, 60)]
    teacher = IterableTeacher({"train": data}).for_split("train", training=True)
    for batcher, has_others in ((Words(100), False), (Batchsort(8), True)):
        teacher.set_batches(batcher)
        teacher.start_epoch(0, 0)
        batch = teacher.batch_act()
        assert (len(batch.choices) > len(batch)) == has_others


def test_windows_pools_hold_whole_batches():
    data = [[("a " * (n % 40), "b")] for n in range(8 * 100 + 3)]
    teacher = IterableTeacher({"train": data}).for_split("train", training=True)
    teacher.set_batches(Batchsort(8), lengths_without_padding)
    assert sorted(map(len, batches_left(teacher))) == [3, *[8] * 100]
