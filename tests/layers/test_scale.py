import numpy as np
import pytest

from tests.ops.array_backends import EACH_OPS
from thincdialog.layers.scale import Scale


def test_scale_stops_at_its_maximum_and_can_come_back(ops):
    X = np.ones((2, 3), dtype="f")
    layer = Scale(2.0, maximum=4.0)
    layer.initialize(X=X)
    np.testing.assert_allclose(layer.predict(X), 2 * X, rtol=1e-6)
    layer.get_param("s")[:] = 10.0
    Y, backprop = layer.begin_update(X)
    np.testing.assert_allclose(Y, 4 * X, rtol=1e-6)
    backprop(-X)
    assert layer.get_grad("s")[0] == 0


@EACH_OPS
def test_scale_beyond_its_maximum_takes_only_gradients_that_lower_it(ops):
    X = ops.alloc2f(2, 3) + 1
    layer = Scale(2.0, maximum=4.0)
    layer.initialize(X=X)
    layer.get_param("s")[:] = 10.0
    _, backprop = layer.begin_update(X)
    backprop(-X)
    assert float(layer.get_grad("s")[0]) == 0
    backprop(X)
    assert float(layer.get_grad("s")[0]) == pytest.approx(6 * 4)
    layer.get_param("s")[:] = 2.0
    for _ in range(300):
        _, backprop = layer.begin_update(X)
        backprop(X)
        layer.finish_update(lambda key, W, dW: (W - 0.01 * dW, 0 * dW))
    assert float(layer.predict(X)[0, 0]) < 1


@pytest.mark.parametrize("initial", [0.0, -1.0, 101.0])
def test_scale_out_of_range(initial):
    with pytest.raises(ValueError, match=r"must be in \(0, 100.0\]"):
        Scale(initial)
