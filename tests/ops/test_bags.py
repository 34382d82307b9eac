import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import NumpyOps

from tests.ops.array_backends import EACH_OPS
from thincdialog.ops.bags import (
    bag_numbers,
    places_in_bags,
    row_gradients,
    split_bags,
    sum_bags,
    sum_by_key,
)
from thincdialog.ops.dialog_fast_ops import DialogFastOps

LENGTHS = st.lists(st.integers(0, 30), min_size=1, max_size=20)


def bags(ops, lengths, n_rows=9, width=3):
    rng = np.random.default_rng(0)
    # Whole numbers, so that sums are exact in any order.
    table = ops.asarray2f(rng.integers(-8, 8, size=(n_rows, width)).astype("f"))
    ids = rng.integers(0, n_rows, size=sum(lengths)).astype("i")
    return table, ids, np.array(lengths, dtype="i")


def halves(lengths):
    return np.full((len(lengths), 1), 0.5, dtype="f")


# Stock ops, and ops with compiled kernels.
OPS = pytest.mark.parametrize("ops", [NumpyOps(), DialogFastOps()], ids=["stock", "fast"])


@OPS
@given(lengths=LENGTHS)
def test_bags_sum_equals_a_loop(ops, lengths):
    table, ids, sizes = bags(ops, lengths)
    wanted = [table[part].sum(axis=0) / 2 for part in np.split(ids, np.cumsum(lengths)[:-1])]
    assert sum_bags(ops, table, ids, sizes, halves(lengths)).tolist() == np.array(wanted).tolist()


@OPS
@given(lengths=LENGTHS)
def test_bags_row_gradients_are_those_of_adding_one_by_one(ops, lengths):
    table, ids, sizes = bags(ops, lengths)
    d_sums = np.random.default_rng(1).integers(-8, 8, size=(len(lengths), 3)).astype("f")
    wanted = np.zeros_like(table)
    np.add.at(wanted, ids, d_sums[np.repeat(np.arange(len(lengths)), lengths)])
    rows, values = row_gradients(ops, 2 * d_sums, ids, sizes, halves(lengths))
    assert rows.tolist() == sorted(set(ids.tolist()))
    found = np.zeros_like(table)
    found[rows] = values
    assert found.tolist() == wanted.tolist()


@OPS
@given(lengths=LENGTHS)
def test_bags_numbers_repeat_each_bag(ops, lengths):
    numbers = bag_numbers(np.array(lengths, dtype="i"))
    assert numbers.tolist() == np.repeat(np.arange(len(lengths)), lengths).tolist()


@given(lengths=LENGTHS, n_segments=st.integers(1, 4))
def test_bags_are_split_by_segment(lengths, n_segments):
    tokens = np.random.default_rng(2).integers(0, 5, size=(sum(lengths), 2)).astype("i")
    ids, sizes = split_bags(tokens, np.array(lengths, "i"), n_segments)
    wanted = [
        [int(id_) for id_, segment in bag.tolist() if min(segment, n_segments - 1) == number]
        for bag in np.split(tokens, np.cumsum(lengths)[:-1])
        for number in range(n_segments)
    ]
    assert sizes.tolist() == [len(part) for part in wanted] and sizes.dtype == np.int32
    assert ids.tolist() == [id_ for part in wanted for id_ in part]


@OPS
@given(keys=st.lists(st.integers(0, 2**31 - 1), max_size=30))
def test_bags_sum_by_key_sorts_keys_of_any_size(ops, keys):
    values = np.ones((len(keys), 2), dtype="f")
    found, sums = sum_by_key(ops, values, np.array(keys, dtype="i8"))
    assert found.tolist() == sorted(set(keys)) and found.dtype == np.int32
    assert sums[:, 1].tolist() == [keys.count(key) for key in found.tolist()]


@EACH_OPS
def test_bags_larger_than_a_block(ops):
    lengths = [0, 5000, 3, 0, 2500, 1]
    table, ids, sizes = bags(ops, lengths, n_rows=40)
    Y = ops.to_numpy(sum_bags(ops, table, ids, sizes, halves(lengths)))
    plain, host_ids = ops.to_numpy(table), ids
    parts = np.split(host_ids, np.cumsum(lengths)[:-1])
    np.testing.assert_array_equal(Y, [plain[part].sum(axis=0) / 2 for part in parts])
    rows, values = row_gradients(ops, 2 * table[:6], ids, sizes, halves(lengths))
    wanted = np.zeros_like(plain)
    np.add.at(wanted, host_ids, plain[:6][np.repeat(np.arange(6), lengths)])
    np.testing.assert_array_equal(ops.to_numpy(values), wanted[rows])


@EACH_OPS
def test_bags_sum_by_key_has_the_same_bits_each_time(ops):
    rng = np.random.default_rng(0)
    values = ops.asarray2f(rng.normal(size=(5000, 8)).astype("f"))
    keys = rng.integers(0, 7, size=5000)
    first = sum_by_key(ops, values, keys)[1]
    assert all((sum_by_key(ops, values, keys)[1] == first).all() for _ in range(5))


def test_bags_places_begin_at_zero_in_each():
    assert places_in_bags(np.array([2, 0, 3])).tolist() == [0, 1, 0, 1, 2]
