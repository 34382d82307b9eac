import numpy as np
import pytest
import thinc.api

from tests.ops.array_backends import backend
from thincdialog.layers.normalise import L2Normalise, LayerNorm


def outputs_and_gradients(build, shape, name):
    """Return the outputs and gradients of a layer for some input, with one of the backends."""
    random = np.random.default_rng(0)
    X, dY = (random.normal(size=shape).astype("f") for _ in range(2))
    X[:1] = 0
    with backend(name):
        layer = build()
        layer.initialize(X=X[:2])
        for param in layer.param_names:
            layer.set_param(param, random.normal(size=shape[1:]).astype("f"))
        Y, backprop = layer.begin_update(X)
        dX = backprop(dY)
    return [Y, dX, *(layer.get_grad(param) for param in layer.param_names)]


SHAPES = pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (40, 130)], ids=str)


@SHAPES
def test_layer_norm_is_thincs(shape):
    wanted = outputs_and_gradients(thinc.api.LayerNorm, shape, -1)
    for name in (-1, "fast"):
        for found, expected in zip(outputs_and_gradients(LayerNorm, shape, name), wanted):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


@SHAPES
def test_l2_normalise_compiled_is_the_plain_one(shape):
    plain, compiled = (outputs_and_gradients(L2Normalise, shape, name) for name in (-1, "fast"))
    # Rows of zeros have gradients of a million.
    for found, expected in zip(compiled, plain):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_l2_normalise_rows_have_length_one_and_zero_stays_zero(ops):
    X = np.array([[3.0, 4.0], [0.0, 0.0], [-2.0, 0.0]], dtype="f")
    Y, backprop = L2Normalise().begin_update(X)
    dX = backprop(np.ones((3, 2), dtype="f"))
    np.testing.assert_allclose(Y, [[0.6, 0.8], [0, 0], [-1, 0]], rtol=1e-6)
    assert np.isfinite(dX).all()
    # The gradient is never parallel to the row: its length does not matter.
    np.testing.assert_allclose((dX * X).sum(axis=1), 0, atol=1e-6)
