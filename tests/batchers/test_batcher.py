"""The contract of batchers: every row once, batches that fit, windows, and custom batchers."""

import inspect
import textwrap
from collections import Counter

import catalogue
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import compounding

from tests.batchers import strategies
from tests.batchers.corpora import lengths_of, one_field
from thincdialog.batchers import (
    Batcher,
    Batchsort,
    Fixed,
    Lengths,
    Padded,
    Sizes,
    Words,
    missing_rows,
    plan_window,
)
from thincdialog.config import load_config, resolve_config
from thincdialog.errors import ConfigError, DataError, DialogError, ProtocolError
from thincdialog.registry import registry


@given(strategies.lengths(), strategies.batchers())
def test_batcher_gives_every_row_once(lengths, batcher):
    limit, _ = batcher.window(0)
    batches = plan_window(batcher, lengths, limit, np.random.default_rng(0))
    rows = Counter(row for batch in batches for row in batch.tolist())
    assert rows == Counter(range(len(lengths.counts)))
    assert all(len(batch) for batch in batches)


@given(strategies.lengths(), strategies.batchers())
def test_batcher_is_deterministic_and_keeps_nothing(lengths, batcher):
    limit, _ = batcher.window(0)
    before = lengths.counts.copy()

    def plan():
        batches = plan_window(batcher, lengths, limit, np.random.default_rng(3))
        return [batch.tolist() for batch in batches]

    first = plan()
    plan_window(batcher, one_field(5), limit, np.random.default_rng(4))
    assert plan() == first
    assert (lengths.counts == before).all()


@pytest.mark.parametrize("batcher", [Fixed(4), Batchsort(4), Words(64), Padded(64)])
def test_batcher_another_seed_gives_another_order_of_the_same_batches(batcher):
    limit, _ = batcher.window(0)
    orders = []
    for seed in (0, 1):
        batches = plan_window(batcher, one_field(400), limit, np.random.default_rng(seed))
        orders.append([tuple(batch.tolist()) for batch in batches])
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_batcher_of_no_rows_has_no_batches():
    none = Lengths(np.zeros((0, 2), dtype=np.int64), (True, True))
    for batcher in (Fixed(4), Batchsort(4), Words(64), Padded(64)):
        assert plan_window(batcher, none, 4, np.random.default_rng(0)) == []


@given(strategies.lengths(), st.integers(1, 100))
def test_batcher_fit_shortens_the_longest_fields_to_the_limit(lengths, limit):
    fitted = Words(limit, oversize="truncate").fit(lengths, limit)
    assert fitted.padded == lengths.padded
    for before, after in zip(lengths.counts.tolist(), fitted.counts.tolist()):
        if sum(before) <= limit:
            assert after == before
            continue
        assert sum(after) == limit
        for field, n_words in enumerate(after):
            assert 0 <= n_words <= before[field]
            if n_words < before[field]:  # The field is cut, so no other field remains much longer.
                assert max(after) <= n_words + 1


def test_batcher_fit_of_examples():
    fitted = Padded(20, oversize="truncate").fit(
        lengths_of([(50, 4), (4, 50), (50, 50), (16, 4), (10**6, 1), (30, 31)]), 20
    )
    assert fitted.counts.tolist() == [[16, 4], [4, 16], [10, 10], [16, 4], [19, 1], [10, 10]]
    assert Padded(7, oversize="truncate").fit(lengths_of([(9, 9, 9)]), 7).counts.tolist() == (
        [[3, 2, 2]]
    )


def test_batcher_fit_that_changes_nothing_is_the_same_object():
    lengths = lengths_of([(15, 5), (10, 10)])  # The rows fit the budget exactly.
    assert len(plan_window(Words(20), lengths, 20, np.random.default_rng(0))) == 2
    for batcher in (Words(20, oversize="truncate"), Words(20, oversize="error")):
        assert batcher.fit(lengths, 20) is lengths
    for batcher in (Words(3), Batchsort(1), Fixed(1)):
        assert batcher.fit(lengths, batcher.window(0)[0]) is lengths


def test_batcher_fit_names_the_first_row_that_does_not():
    lengths = lengths_of([(5, 5), (15, 6), (30, 30)])
    text = r"^data.* the example 'b' has 21 words \(tokens\), but a whole batch holds 20: raise the"
    with pytest.raises(DataError, match=text):
        Padded(20, oversize="error").fit(lengths, 20, lambda row: "abc"[row])


def test_batcher_window_of_a_number_is_the_buffer():
    assert Words(100, buffer=7).window(12345) == (100, 7)
    assert Fixed(5).window(3) == (5, 1)


def test_batcher_window_of_a_schedule_ends_where_it_has_moved_by_a_tenth():
    rising = Words(compounding(100.0, 200.0, 1.02), buffer=50)
    # 100, 102, 104, 106, 108, 110, 112: 112 differs by more than a tenth.
    assert rising.window(0) == (100, 6)
    # 110 to 121, the integer part of each.
    assert rising.window(5) == (110, 6)
    assert rising.window(500) == (200, 50)
    falling = Batchsort(compounding(100.0, 10.0, 0.97), buffer=50)
    # 100, 97, 94, 91, 88: all have the last number that differs by at most a tenth.
    assert falling.window(0) == (91, 4)
    ended = Batchsort(iter([10, 20, 30]), buffer=4)
    assert [ended.window(step) for step in (0, 1, 2, 9)] == [(10, 1), (20, 1), (30, 4), (30, 4)]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 20))
def test_batcher_window_of_any_schedule_never_exceeds_it(sizes, buffer):
    batcher = Batchsort(iter(sizes), buffer=buffer)
    for step in range(len(sizes) + 3):
        limit, n_batches = batcher.window(step)
        scheduled = [batcher.sizes.at(step + ahead) for ahead in range(n_batches)]
        assert limit == min(scheduled) and 1 <= n_batches <= buffer
        assert all(abs(size - scheduled[0]) <= 0.1 * scheduled[0] for size in scheduled)


def test_batcher_missing_rows_are_counted_or_estimated():
    assert missing_rows(Batchsort(32, buffer=4), 0, 0, 0) == 128
    assert missing_rows(Batchsort(32, buffer=4), 0, 100, 5000) == 28
    assert missing_rows(Batchsort(32, buffer=4), 0, 200, 5000) == 0
    words = Words(1000, buffer=4)
    # At first one row per batch, then at most as many as there are already, whatever their lengths.
    assert missing_rows(words, 0, 0, 0) == 4
    assert missing_rows(words, 0, 4, 4) == 4
    assert missing_rows(words, 0, 64, 640) == 64
    # 256 rows of 10: for 4,000 words, 144 more rows are missing.
    assert missing_rows(words, 0, 256, 2560) == 144
    assert missing_rows(words, 0, 400, 3999) == 1
    assert missing_rows(words, 0, 3, 4000) == 0
    assert missing_rows(Words(2, buffer=2), 0, 0, 0) == 2


class Given(Batcher):
    """Returns the batches that it was made with."""

    def __init__(self, batches):
        super().__init__(Sizes(2), buffer=4)
        self.batches = batches

    def plan(self, lengths, limit, rng):
        return self.batches


@pytest.mark.parametrize(
    "batches, words",
    [
        ([], ""),
        ([[0, 1]], "it got 4 rows and returned 2 in 1 batches: 2 are missing, such as row 2"),
        ([[0, 1], [2]], ""),
        ([[0, 1], [2, 3], [3]], "1 are returned more than once, such as row 3"),
        ([[0, 1], [2, 2]], ""),
        ([[1, 2], [3, 4]], "there is no row 4 (rows are counted from 0)"),
        ([[0, 1], [2, -1]], ""),
        ([[0, 1], [2, 3], []], "and no batch without rows, but returned 1"),
        ([[0.0, 1.0], [2.0, 3.0]], "as a list of arrays of whole numbers (int)"),
        ([[True, True, False, False]], ""),
        ([[[0, 1], [2, 3]]], ""),
        ([0, 1, 2, 3], ""),
        (["0123"], ""),
        (None, ""),
        (([row] for row in range(4)), ""),
    ],
    ids=lambda value: "generator" if hasattr(value, "send") else str(value),
)
def test_batcher_plan_that_loses_or_repeats_a_row_is_an_error(batches, words):
    with pytest.raises(ProtocolError, match=r"Given.plan\(\) must return every row") as caught:
        plan_window(Given(batches), one_field(4), 2, np.random.default_rng(0))
    # A mistake that the command line reports without a traceback.
    assert isinstance(caught.value, DialogError) and words in str(caught.value)


def test_batcher_without_a_plan_or_a_buffer_is_refused():
    with pytest.raises(DialogError, match=r"Batcher has no plan\(lengths, limit, rng\)"):
        plan_window(Batcher(Sizes(2)), one_field(4), 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="buffer = 0, expected 1 batch or more"):
        Batcher(Sizes(2), buffer=0)


def test_batcher_plan_may_be_of_lists():
    batches = plan_window(Given([[2, 0], [3, 1]]), one_field(4), 2, np.random.default_rng(0))
    assert sorted(batch.tolist() for batch in batches) == [[2, 0], [3, 1]]


def test_batcher_example_of_the_docstring_works():
    text = inspect.getdoc(Batcher)
    code = text[text.index("    class Opposites") : text.index("A batcher keeps no state")]
    names = {"Batcher": Batcher, "Sizes": Sizes, "registry": registry}
    exec(textwrap.dedent(code), names)
    try:
        batcher = registry.batchers.get("opposites.v1")()
    finally:
        catalogue._remove((*registry.batchers.namespace, "opposites.v1"))
    lengths = lengths_of([[9], [1], [5], [7], [3]])
    batches = plan_window(batcher, lengths, batcher.window(0)[0], np.random.default_rng(0))
    pairs = sorted(sorted(lengths.counts[batch, 0].tolist()) for batch in batches)
    assert pairs == [[1, 9], [3, 7], [5]]


NO_SIZE = "'size' of thincdialog.Batchsort.v1 should be an integer or a"


@pytest.mark.parametrize(
    "block, text",
    [
        ('size = "x"', NO_SIZE),
        ("size = 2.5", NO_SIZE),
        ("size = true", NO_SIZE),
        ("size = 0", "'size' of thincdialog.Batchsort.v1 is 0"),
        ("size = 2\nbuffer = 0", "'buffer' of thincdialog.Batchsort.v1 is 0"),
        ('[world.batcher.size]\n@batchers = "thincdialog.Fixed.v1"\nsize = 2', NO_SIZE),
        (
            '[world.batcher.size]\n@schedules = "constant.v1"\nrate = 0.5',
            "'size' of thincdialog.Batchsort.v1 at batch 0 is 0.5",
        ),
    ],
)
def test_batcher_config_errors_say_what_is_wanted(root, tmp_path, block, text):
    with pytest.raises(ConfigError) as error:
        built(root, tmp_path, block)
    assert "[world.batcher]" in str(error.value) and text in str(error.value)


def test_batcher_takes_a_schedule_from_a_config(root, tmp_path):
    schedule = '@schedules = "compounding.v1"\nstart = 4\nstop = 32\ncompound = 1.001'
    batcher = built(root, tmp_path, f"[world.batcher.size]\n{schedule}")
    assert batcher.window(0)[0] == 4
    assert batcher.window(10_000) == (32, 256)


def built(root, folder, block):
    """Return the batcher of the quickstart, with a block instead of its size."""
    text = (root / "configs" / "quickstart.cfg").read_text(encoding="utf8")
    old = '@batchers = "thincdialog.Fixed.v1"\nsize = 128\n'
    assert old in text
    path = folder / "config.cfg"
    new = f'@batchers = "thincdialog.Batchsort.v1"\n{block}\n'
    path.write_text(text.replace(old, new), encoding="utf8")
    world = resolve_config(load_config(path))["world"]
    return world.keywords["batcher"]
