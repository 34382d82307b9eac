import copy

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import Model, NumpyOps

from tests.ops.array_backends import EACH_OPS
from thincdialog.ops.table_gradient import TableGradient, TouchedRows

N_ROWS = 12


def added(ops, kept, rows, seed):
    """Add random values to some rows. Return a dense array of the values."""
    dense = np.zeros((N_ROWS, 2), dtype="f")
    dense[rows] = np.random.default_rng(seed).normal(size=(len(rows), 2))
    kept.add(np.array(rows, dtype="i"), ops.asarray2f(dense[rows]))
    return dense


@EACH_OPS
def test_table_gradient_keeps_its_rows_out_of_the_array_until_it_is_read(ops):
    dense = ops.alloc2f(N_ROWS, 2)
    kept = TableGradient(ops, dense)
    assert [array.shape for array in kept.rows()] == [(0,), (0, 2)]
    wanted = added(ops, kept, [1, 4], 0)
    wanted += added(ops, kept, [0, 4], 1)
    rows, values = kept.rows()
    assert not dense.any()
    assert rows.tolist() == [0, 1, 4] and str(rows.dtype) == "int64"
    assert ops.to_numpy(values).tobytes() == wanted[[0, 1, 4]].tobytes()
    kept.write()
    assert ops.to_numpy(dense).tobytes() == wanted.tobytes()
    dense *= 2  # A reader may change the array.
    assert ops.to_numpy(kept.rows()[1]).tobytes() == (2 * wanted[[0, 1, 4]]).tobytes()
    kept.clear()
    assert not dense.any() and kept.rows()[0].shape == (0,)
    added(ops, kept, [3], 2)
    assert kept.rows()[0].tolist() == [3] and not dense.any()


@given(
    batches=st.lists(st.sets(st.integers(0, N_ROWS - 1), min_size=1), max_size=6),
    read_after=st.sets(st.integers(0, 5)),
)
@settings(max_examples=40, deadline=None)
def test_table_gradient_has_the_bits_of_adding_to_the_array(batches, read_after):
    ops, dense = NumpyOps(), np.zeros((N_ROWS, 2), dtype="f")
    kept, wanted = TableGradient(ops, dense), np.zeros_like(dense)
    for number, rows in enumerate(batches):
        wanted += added(ops, kept, sorted(rows), number)
        if number in read_after:
            kept.write()
            assert dense.tobytes() == wanted.tobytes()
    rows, values = kept.rows()
    assert rows.tolist() == sorted(set().union(*batches))
    assert values.tobytes() == wanted[rows].tobytes()
    kept.clear()
    assert not dense.any()


def test_table_gradient_never_keeps_more_rows_than_the_table_has():
    ops, dense = NumpyOps(), np.zeros((N_ROWS, 2), dtype="f")
    kept = TableGradient(ops, dense)
    one = added(ops, kept, list(range(N_ROWS)), 0)
    assert not dense.any()
    wanted = one + added(ops, kept, [7], 1)
    assert dense.tobytes() == wanted.tobytes()


def test_touched_rows_add_to_the_gradient_unless_they_are_to_be_kept():
    touched, rows = TouchedRows(), np.array([1, 4], dtype="i")
    layer = Model("table", lambda *_: None, params={"E": np.zeros((6, 2), dtype="f")})
    touched.add(layer, rows, np.ones((2, 2), dtype="f"))
    gradient = layer.get_grad("E")
    assert gradient.sum(axis=1).tolist() == [0, 2, 0, 0, 2, 0]
    gradient[:] = 0
    kept = TableGradient(layer.ops, gradient)
    touched.keep_in(kept)
    twin = copy.deepcopy(touched)
    touched.add(layer, rows, np.ones((2, 2), dtype="f"))
    assert not gradient.any() and kept.rows()[0].tolist() == [1, 4]
    twin.add(layer, rows, np.ones((2, 2), dtype="f"))
    assert gradient.sum(axis=1).tolist() == [0, 2, 0, 0, 2, 0]
