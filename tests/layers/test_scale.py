import numpy as np
import pytest

from thincdialog.layers.scale import Scale


def test_scale_stops_at_its_maximum_and_can_come_back(ops):
    X = np.ones((2, 3), dtype="f")
    layer = Scale(2.0, maximum=4.0)
    layer.initialize(X=X)
    np.testing.assert_allclose(layer.predict(X), 2 * X, rtol=1e-6)
    layer.get_param("s")[:] = 10.0
    Y, backprop = layer.begin_update(X)
    np.testing.assert_allclose(Y, 4 * X, rtol=1e-6)
    backprop(X)
    assert layer.get_grad("s")[0] == 0


@pytest.mark.parametrize("initial", [0.0, -1.0, 101.0])
def test_scale_out_of_range(initial):
    with pytest.raises(ValueError, match=r"must be in \(0, 100.0\]"):
        Scale(initial)
