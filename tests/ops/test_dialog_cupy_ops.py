"""Matrix products on a GPU, and copies of its ops."""

import copy
import pickle

import numpy as np
import pytest

from thincdialog.ops.choice import get_dialog_ops

pytestmark = pytest.mark.gpu


def drawn(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_cupy_ops_products_are_right(turned):
    ops = get_dialog_ops(0)
    x, y = (each.astype("f") for each in (drawn(7, 33), drawn(33, 12)))
    given = [each.T.copy() if turn else each for each, turn in zip((x, y), turned)]
    on_ops = [ops.asarray2f(each) for each in given]
    found = ops.to_numpy(ops.gemm(*on_ops, trans1=turned[0], trans2=turned[1]))
    wanted, size = x.astype("d") @ y, abs(x).astype("d") @ abs(y)
    assert found.dtype == np.float32 and found.shape == (7, 12)
    assert (abs(found - wanted) <= 2.1 * 2.0**-24 * size + 1e-5).all()
    # Other matrices are read in place, whatever their order.
    strided = ops.gemm(ops.asarray2f(np.repeat(x, 2, axis=1))[:, ::2], ops.asarray2f(y))
    np.testing.assert_allclose(ops.to_numpy(strided), found, rtol=1e-5, atol=1e-5)


def test_cupy_ops_copies_are_of_their_device():
    ops = get_dialog_ops(1 if get_dialog_ops(0).xp.cuda.runtime.getDeviceCount() > 1 else 0)
    for other in (copy.deepcopy(ops), pickle.loads(pickle.dumps(ops))):
        assert type(other) is type(ops) and other.device_id == ops.device_id
