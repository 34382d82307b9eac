"""Gradients are summed in a tree that does not depend on which worker computed them."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import NumpyOps

from tests.models.test_gradient_sum import tree_sum
from thincdialog.models.gradient_sum import GradientSum
from thincdialog.ops.table_gradient import merged_rows
from thincdialog.optimizers.row_sparse import Segment
from thincdialog.runners.cluster.slots import Slots, additions

OPS = NumpyOps()


def gradients(n, seed=0):
    generator = numpy.random.default_rng(seed)
    return [generator.normal(size=7).astype("f") * 10.0 ** (k % 8) for k in range(n)]


@given(st.integers(1, 40), st.integers(1, 12))
def test_slots_any_number_of_workers_sums_in_the_same_tree(n, n_workers):
    vectors = gradients(n)
    slots = Slots(n, n_workers)
    found = {slot: GradientSum(OPS, [Segment(0, 7)]) for slot in range(slots.n_slots)}
    for microbatch, vector in enumerate(vectors):
        found[slots.of(microbatch)].add(vector.copy(), [])
    sums = []
    for slot in range(slots.filled(n)):
        sums.append(numpy.zeros(7, dtype="f"))
        found[slot].take(sums[-1])
    for left, right in additions(len(sums)):
        sums[left] += sums[right]
    assert sums[0].tobytes() == tree_sum(vectors).tobytes()


@given(st.integers(1, 40), st.integers(1, 12))
def test_slots_have_one_worker_each_and_share_work_evenly(n, n_workers):
    slots = Slots(n, n_workers)
    own = [list(slots.own(worker)) for worker in range(n_workers)]
    assert [slot for each in own for slot in each] == list(range(slots.n_slots))
    counts = [0] * n_workers
    for microbatch in range(n):
        counts[slots.worker(slots.of(microbatch))] += 1
    assert sum(counts) == n
    assert max(counts) <= -(-n // n_workers) or slots.size == 1


@pytest.mark.parametrize("n, pairs", [(1, []), (2, [(0, 1)]), (3, [(0, 1), (0, 2)])])
def test_additions_of_few_slots(n, pairs):
    assert list(additions(n)) == pairs


@given(st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=5))
def test_merged_rows_are_those_of_the_whole_tables(rows):
    generator = numpy.random.default_rng(1)
    whole, sparse = [], []
    for numbers in map(sorted, rows):
        values = generator.normal(size=(len(numbers), 3)).astype("f")
        table = numpy.zeros((10, 3), dtype="f")
        table[numbers] = values
        whole.append(table)
        sparse.append((numpy.array(numbers, dtype="q"), values))
    total = sparse[0]
    for each in sparse[1:]:
        total = merged_rows(OPS, (total, each))
    dense = numpy.zeros((10, 3), dtype="f")
    dense[total[0]] = total[1]
    expected = whole[0]
    for table in whole[1:]:
        expected = expected + table
    assert numpy.array_equal(dense, expected)
    assert list(total[0]) == sorted({number for numbers in rows for number in numbers})
