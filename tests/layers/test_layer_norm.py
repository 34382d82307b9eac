import numpy as np
import pytest
import thinc.api

from tests.ops.array_backends import backend
from thincdialog.layers.l2_normalise import L2Normalise
from thincdialog.layers.layer_norm import LayerNorm
from thincdialog.layers.window_block import WindowBlock


def outputs_and_gradients(build, shape, name):
    """Of a layer with some input, with one of the backends."""
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


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (40, 130)], ids=str)
def test_layer_norm_is_thincs(shape):
    wanted = outputs_and_gradients(thinc.api.LayerNorm, shape, -1)
    for name in (-1, "fast"):
        for found, expected in zip(outputs_and_gradients(LayerNorm, shape, name), wanted):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (40, 130)], ids=str)
def test_l2_normalise_compiled_is_the_plain_one(shape):
    plain, compiled = (outputs_and_gradients(L2Normalise, shape, name) for name in (-1, "fast"))
    # Rows of zeros have gradients of a million.
    for found, expected in zip(compiled, plain):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_window_block_has_the_nodes_and_weights_it_had():
    nodes = [(node.name, node.param_names) for node in WindowBlock(6).walk()]
    whole = thinc.api.Maxout(6, 18, 3, normalize=True)
    names = [(node.name, node.param_names) for node in whole.layers]
    assert [node for node in nodes if node[1]] == names
