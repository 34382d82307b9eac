"""The compiled ops return the same as Thinc's."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from thinc.api import NumpyOps, get_ops

from thincdialog.ops.bags import sum_bags
from thincdialog.ops.dialog_fast_ops import DialogFastOps
from thincdialog.ops.dialog_ops import DialogNumpyOps
from thincdialog.registry import registry

SHAPES = [(0,), (0, 4), (3, 0), (1, 1), (5, 7), (2, 3, 4), (33, 130)]
LENGTHS = [[], [1], [0], [3, 0, 2, 1], [0, 0, 4], [1] * 20, [40, 3]]
ACTIVATIONS = ["relu", "gelu"]
FAST, STOCK = DialogFastOps(), NumpyOps(use_blis=False)


def floats(shape, seed=0, scale=3.0):
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype("f")


def same(found, wanted, rtol=2e-5, atol=2e-6):
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted):
            same(one, other)
        return
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def both(name, *arguments, **settings):
    """Call both ops, each with its own copies. Return their results, and the copies."""
    results = []
    for ops in (FAST, STOCK):
        own = copy.deepcopy(arguments)
        results.append((getattr(ops, name)(*own, **settings), own))
    return results


def check(name, *arguments, **settings):
    (found, changed), (wanted, wanted_changed) = both(name, *arguments, **settings)
    same(found, wanted)
    same(changed, wanted_changed) if all(hasattr(a, "shape") for a in arguments) else None
    return found


def sizes(lengths):
    return np.array(lengths, dtype="i")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_fast_ops_activations(name, shape):
    X, dY = floats(shape), floats(shape, 1)
    given = FAST.relu(X) if name == "relu" else X
    for inplace in (False, True):
        check(name, X, inplace=inplace)
        check(f"backprop_{name}", dY, given, inplace=inplace)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_fast_ops_rows_do_not_depend_on_the_other_rows(name):
    X = floats((60, 7))
    whole = getattr(FAST, name)(X)
    for first in range(0, 40, 3):
        for last in range(first + 1, 60, 7):
            part = getattr(FAST, name)(X[first:last])
            assert part.tobytes() == whole[first:last].tobytes()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_fast_ops_far_numbers_and_nan(name):
    X = np.array([-1e15, -90, -25, 0, 25, 90, 1e15], dtype="f")
    with np.errstate(all="ignore"):
        wanted = getattr(STOCK, name)(X.copy())
    same(getattr(FAST, name)(X), wanted)
    X[2] = np.nan
    assert np.isnan(getattr(FAST, name)(X)[2])


@pytest.mark.parametrize("width", [0, 1, 17])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_fast_ops_sequences(lengths, width):
    n, n_rows = sizes(lengths), sum(lengths)
    X, dY = floats((n_rows, width)), floats((len(lengths), width), 1)
    if n_rows or not width:
        check("reduce_sum", X, n)
    if n_rows and 0 not in lengths:
        check("reduce_mean", X, n)
    for name in ("backprop_reduce_sum", "backprop_reduce_mean"):
        if 0 not in lengths:
            check(name, dY, n)


def test_fast_ops_reductions_of_empty_sequences_are_zero():
    X, n = floats((3, 2)), sizes([0, 3, 0])
    assert FAST.reduce_mean(X, n)[[0, 2]].tolist() == [[0, 0], [0, 0]]
    assert FAST.reduce_sum(X[:0], sizes([0, 0])).tolist() == [[0, 0], [0, 0]]
    same(FAST.backprop_reduce_mean(floats((3, 2)), n), np.repeat(floats((3, 2))[1:2] / 3, 3, 0))


def test_fast_ops_reductions_refuse_what_thinc_refuses():
    for name, lengths in (("sum", [-1, 2]), ("sum", [3, 3]), ("mean", [-1])):
        for ops in (FAST, STOCK):
            with pytest.raises((ValueError, IndexError)):
                getattr(ops, f"reduce_{name}")(floats((5, 3)), sizes(lengths))


@pytest.mark.parametrize("n_pieces", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (6, 9)], ids=str)
def test_fast_ops_maxout(shape, n_pieces):
    check("maxout", floats((*shape, n_pieces)))


def test_fast_ops_tables_refuse_rows_that_are_not_there():
    table = floats((7, 5))
    for row in (-1, 7):
        with pytest.raises(IndexError, match="from 0 to 6"):
            sum_bags(FAST, table, np.array([row], "i"), sizes([1]), np.ones((1, 1), "f"))


def test_fast_ops_dropout_draws_what_the_numpy_ops_draw():
    for ops in (fast := DialogFastOps(), slow := DialogNumpyOps()):
        ops.seed(1, 2, 3)
    for rate in (0.0, 0.3, 0.9, 1.0):
        assert (fast.get_dropout_mask((9, 50), rate) == slow.get_dropout_mask((9, 50), rate)).all()
    assert fast.get_dropout_mask((0, 3), 0.5).shape == (0, 3)


def test_fast_ops_leave_other_types_to_the_stock_ops():
    X = floats((5, 6)).astype("d")
    for name in ("relu", "gelu"):
        same(getattr(FAST, name)(X.copy()), getattr(STOCK, name)(X.copy()))
    same(FAST.reduce_sum(X, sizes([2, 3])), STOCK.reduce_sum(X, sizes([2, 3])))


def test_fast_ops_can_be_named_and_copied():
    assert registry.ops.get("thincdialog_fast") is DialogFastOps
    assert isinstance(get_ops("thincdialog_fast"), DialogFastOps)
    assert isinstance(copy.deepcopy(FAST), DialogFastOps)


def test_fast_ops_leave_the_gil_to_others():
    X = floats((1000, 3000))
    FAST.gelu(X, inplace=True)
    count = 0

    def work():
        for _ in range(10):
            FAST.gelu(X, inplace=True)

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        while not working.done():
            count += 1
    # Each call takes milliseconds: another thread counts far meanwhile, if it can run.
    assert count > 1000
