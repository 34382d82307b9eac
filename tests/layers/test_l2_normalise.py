import numpy as np
import pytest
from thinc.api import Ragged

from tests.ops.array_backends import backend
from thincdialog.layers.l2_normalise import L2Normalise
from thincdialog.layers.pool import pool
from thincdialog.layers.scale import Scale


def test_l2_normalise_rows_have_length_one_and_zero_stays_zero():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [-2.0, 0.0]], dtype="f")
    with backend(-1):
        Y, backprop = L2Normalise().begin_update(X)
        dX = backprop(np.ones((3, 2), dtype="f"))
    np.testing.assert_allclose(Y, [[0.6, 0.8], [0, 0], [-1, 0]], rtol=1e-6)
    assert np.isfinite(dX).all()
    # The gradient never points along the row: its length does not matter.
    np.testing.assert_allclose((dX * X).sum(axis=1), 0, atol=1e-6)


def test_scale_stops_at_its_maximum_and_can_come_back():
    X = np.ones((2, 3), dtype="f")
    with backend(-1):
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


def test_pool_takes_the_highest_and_the_mean():
    X = Ragged(np.array([[1, 5], [3, 1], [2, 2]], dtype="f"), np.array([2, 0, 1], dtype="i"))
    with backend(-1):
        Y = pool("max+mean").predict(X)
    assert Y.tolist() == [[3, 5, 2, 3], [0, 0, 0, 0], [2, 2, 2, 2]]
