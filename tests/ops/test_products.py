"""Products on a GPU whose factors are rounded."""

import copy
import pickle

import numpy as np
import pytest

from thincdialog.ops.choice import get_dialog_ops
from thincdialog.ops.dialog_ops import exact_products
from thincdialog.ops.gpu import kernels

pytestmark = pytest.mark.gpu
# The largest that rounding to so many bits behind the point changes a factor by, as a share.
ROUNDS = {"float32": 2.0**-24, "tf32": 2.0**-10, "bf16": 2.0**-8}


def drawn(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def as_bf16(X):
    """By the definition, number by number: the nearest of those with 8 bits."""
    fractions, powers = np.frexp(X)
    return np.ldexp(np.rint(fractions * 2.0**8), powers - 8)


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("precision", ROUNDS)
def test_products_are_right_as_far_as_factors_are(precision, turned):
    ops = get_dialog_ops(0, precision=precision)
    x, y = (each.astype("f") for each in (drawn(7, 33), drawn(33, 12)))
    given = [each.T.copy() if turn else each for each, turn in zip((x, y), turned)]
    on_ops = [ops.asarray2f(each) for each in given]
    found = ops.to_numpy(ops.gemm(*on_ops, trans1=turned[0], trans2=turned[1]))
    wanted, size = x.astype("d") @ y, abs(x).astype("d") @ abs(y)
    assert found.dtype == np.float32 and found.shape == (7, 12)
    assert (abs(found - wanted) <= 2.1 * ROUNDS[precision] * size + 1e-5).all()
    cupy = ops.xp
    if precision == "tf32" and hasattr(cupy, "is_stand_in"):  # A GPU may round or not.
        assert abs(found - wanted).max() > 1e-4
    if precision == "bf16":
        np.testing.assert_allclose(found, as_bf16(x) @ as_bf16(y), rtol=1e-4, atol=1e-5)
        assert abs(found - wanted).max() > 1e-4
    # Others are read where they lie, whatever their order.
    strided = ops.gemm(ops.asarray2f(np.repeat(x, 2, axis=1))[:, ::2], ops.asarray2f(y))
    np.testing.assert_allclose(ops.to_numpy(strided), found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_products_are_added_to_what_is_there(precision):
    ops = get_dialog_ops(0, precision=precision)
    x, y, before = drawn(9, 4), drawn(9, 6), drawn(4, 6)
    out = ops.asarray2f(before)
    assert ops.add_product(out, ops.asarray2f(x), ops.asarray2f(y), trans1=True) is out
    product = ops.gemm(ops.asarray2f(x), ops.asarray2f(y), trans1=True)
    np.testing.assert_allclose(ops.to_numpy(out), before + ops.to_numpy(product), atol=1e-5)
    nothing = ops.alloc2f(0, 4)
    assert not ops.gemm(nothing, nothing, trans1=True).any()
    assert ops.gemm(nothing, ops.alloc2f(4, 3)).shape == (0, 3)
    kept = ops.to_numpy(out)
    ops.add_product(out, nothing, ops.alloc2f(0, 6), trans1=True)
    assert (ops.to_numpy(out) == kept).all()


def test_products_that_are_to_be_exact_stay_so():
    plain, rounded = (get_dialog_ops(0, precision=each) for each in ("float32", "bf16"))
    x, y = (plain.asarray2f(each) for each in (drawn(5, 40), drawn(40, 3)))
    with exact_products(plain), exact_products(rounded):
        assert (plain.gemm(x, y) == rounded.gemm(x, y)).all()
    assert (plain.gemm(x, y) != rounded.gemm(x, y)).any()


def test_products_of_copied_ops_are_of_their_precision():
    ops = get_dialog_ops(0, precision="tf32")
    assert get_dialog_ops(0).precision == "float32"
    for other in (copy.deepcopy(ops), pickle.loads(pickle.dumps(ops))):
        assert (other.precision, other.device_id) == ("tf32", 0)


def test_products_factors_are_rounded_to_the_nearest_and_then_to_even_ones():
    ops = get_dialog_ops(0)
    X = [1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -(1 + 2**-8), 3.5e38, np.inf, -np.inf, 0.0]
    wanted = [1.0, 1 + 2**-6, 1 + 2**-7, -1.0, np.inf, np.inf, -np.inf, 0.0]
    with np.errstate(over="ignore"):
        X = np.array([*X, 3.39e38, np.nan], dtype="f")
    halves = kernels.round_to_bf16(ops.xp.asarray(X), ops.xp.asarray(X[::-1].copy()))
    first, second = ((ops.to_numpy(each).astype("u4") << 16).view("f") for each in halves)
    assert first[:-2].tolist() == wanted and np.isnan(first[-1])
    assert first[-2] == np.float32(3.3895314e38)
    assert first[::-1].tobytes() == second.tobytes()
    many = drawn(5000).astype("f")
    halves, _ = kernels.round_to_bf16(ops.xp.asarray(many), ops.xp.zeros((0,), dtype="f"))
    found = (ops.to_numpy(halves).astype("u4") << 16).view("f")
    assert (found == as_bf16(many)).all()


def test_products_that_a_gpu_does_not_have_are_refused(monkeypatch):
    cupy = pytest.importorskip("cupy")
    if not hasattr(cupy, "is_stand_in"):
        pytest.skip("this GPU has what it has")
    monkeypatch.setattr(cupy.cuda.Device, "compute_capability", "75")
    from thincdialog.errors import DialogError

    with pytest.raises(DialogError, match='"tf32" needs a GPU .* 8.0 or higher, but GPU 0 has 7.5'):
        get_dialog_ops(0, precision="tf32")
    assert get_dialog_ops(0).precision == "float32"
