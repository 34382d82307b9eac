"""A gated activation, compared with its formula in double precision."""

import numpy as np
import pytest

from tests.ops.array_backends import EACH_OPS
from tests.ops.test_attention import draw, slope
from thincdialog.ops.swiglu import swiglu


def swiglu_slowly(Z):
    gates, values = np.split(Z, 2, axis=1)
    return gates / (1 + np.exp(-gates)) * values


@EACH_OPS
@pytest.mark.parametrize("shape", [(7, 10), (1, 2), (0, 4), (40, 66)])
def test_swiglu_is_the_formula(ops, shape):
    Z, b = 3 * draw(*shape), draw(shape[1])
    wanted = swiglu_slowly(Z + b)
    dY = draw(*wanted.shape) + 1
    on_ops = ops.asarray2f(Z)
    Y, backprop = swiglu(ops, on_ops, ops.asarray1f(b))
    np.testing.assert_allclose(ops.to_numpy(Y), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ops.to_numpy(on_ops), Z + b, rtol=1e-5, atol=1e-5)
    dZ, db = map(ops.to_numpy, backprop(ops.asarray2f(dY)))
    np.testing.assert_allclose(dZ, slope(swiglu_slowly, Z + b, dY), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(db, dZ.sum(axis=0), rtol=1e-3, atol=1e-3)


@EACH_OPS
def test_swiglu_of_large_numbers_is_finite(ops):
    Z = ops.asarray2f([[100.0, -100.0, 2.0, 2.0]])
    Y, backprop = swiglu(ops, Z, ops.alloc1f(4))
    np.testing.assert_allclose(ops.to_numpy(Y), [[200.0, 0.0]], atol=1e-5)
    dZ, _ = backprop(ops.asarray2f([[1.0, 1.0]]))
    np.testing.assert_allclose(ops.to_numpy(dZ), [[2.0, 0.0, 100.0, 0.0]], atol=1e-5)
