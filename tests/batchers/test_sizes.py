"""Sizes: numbers, schedules, and values that are neither."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from thinc.api import compounding, constant

from thincdialog.batchers import Batchsort, Fixed, Padded, Sizes, Words
from thincdialog.errors import ConfigError


@pytest.mark.parametrize("size", [4, np.int64(4), np.uint8(4)])
def test_sizes_a_number_holds_for_ever(size):
    sizes = Sizes(size)
    assert sizes.is_constant
    assert [sizes.at(step) for step in (0, 7, 10**9)] == [4, 4, 4]
    assert type(sizes.at(0)) is int


def test_sizes_of_a_schedule_are_its_whole_parts_asked_in_any_order():
    sizes = Sizes(compounding(2.0, 6.0, 1.5))
    assert not sizes.is_constant
    assert [sizes.at(step) for step in (3, 0, 1, 2, 3, 50)] == [6, 2, 3, 4, 6, 6]
    assert sizes.next(1, 4).tolist() == [3, 4, 6, 6]
    assert Sizes(constant(5.0)).at(12) == 5
    assert Sizes(iter([np.float32(3.9), Fraction(9, 2)])).next(0, 2).tolist() == [3, 4]


def test_sizes_schedule_that_ends_stays_at_its_last_number():
    sizes = Sizes(iter([2, 4, 8]))
    assert sizes.next(0, 5).tolist() == [2, 4, 8, 8, 8]
    assert sizes.next(7, 2).tolist() == [8, 8]
    assert sizes.at(100) == 8


@pytest.mark.parametrize(
    "size", [0, -1, True, False, 2.5, None, "x", "", [], [0.5], [True], [None], 10**13, object()]
)
def test_sizes_refuses_invalid_sizes(size):
    with pytest.raises(ConfigError, match="the size of batches"):
        Sizes(size)


@pytest.mark.parametrize("value", [0.99, 0, -3, float("nan"), float("inf"), "7", None, True])
def test_sizes_invalid_value_of_a_schedule_is_named_with_its_batch(value):
    sizes = Sizes(itertools.chain([8, 4], itertools.repeat(value)), "'size' of some.v1")
    assert sizes.at(1) == 4
    for _ in range(2):
        with pytest.raises(ConfigError) as error:
            sizes.at(2)
        text = f"'size' of some.v1 at batch 2 is {value!r} - give whole numbers of at least 1"
        assert text in str(error.value)
        sizes = Sizes(itertools.chain([8, 4], itertools.repeat(value)), "'size' of some.v1")


@pytest.mark.parametrize("make", [Batchsort, Words, Padded])
def test_sizes_all_problems_of_a_batcher_are_reported_at_once(make):
    with pytest.raises(ConfigError) as error:
        make(0, buffer=0)
    assert len(error.value.problems) == 2
    for buffer in (-1, 2.5, True, None):
        with pytest.raises(ConfigError, match="'buffer' of thincdialog"):
            make(4, buffer=buffer)
    assert make(np.int32(4), buffer=np.int64(3)).window(0) == (4, 3)


def test_sizes_fixed_has_no_buffer_to_check():
    assert Fixed(3).window(9) == (3, 1)
    with pytest.raises(ConfigError, match="'size' of thincdialog.Fixed.v1 is 0"):
        Fixed(0)
