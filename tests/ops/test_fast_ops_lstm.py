"""Thinc's LSTM, compiled."""

import numpy as np
import pytest
from thinc.api import NumpyOps

from thincdialog.ops.dialog_fast_ops import DialogFastOps

FAST, STOCK = DialogFastOps(), NumpyOps()


def example(depth, n_directions, sizes, nO=3, nI=4):
    random = np.random.default_rng(0)
    n_weights = 0
    for layer in range(depth):
        width = nI if layer == 0 else nO * n_directions
        n_weights += n_directions * 4 * nO * (width + nO + 2)
    arrays = [
        random.normal(size=(n_weights,)),
        *(random.normal(size=(depth, n_directions, nO)) for _ in range(2)),
        random.normal(size=(sum(sizes), nI)),
    ]
    return [array.astype("f") for array in arrays] + [np.array(sizes, dtype="i")]


@pytest.mark.parametrize("sizes", [[1], [1, 1, 1], [3, 2, 2, 1], [5, 5]], ids=str)
@pytest.mark.parametrize("n_directions", [1, 2])
@pytest.mark.parametrize("depth", [1, 2])
def test_fast_ops_lstm_gives_what_thinc_gives(depth, n_directions, sizes):
    arguments = example(depth, n_directions, sizes)
    Y, _ = FAST.lstm_forward_training(*arguments)
    wanted, _ = STOCK.lstm_forward_training(*[array.copy() for array in arguments])
    np.testing.assert_allclose(Y, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(FAST.lstm_forward_inference(*arguments), Y)


@pytest.mark.parametrize("depth, n_directions, sizes", [(1, 1, [2, 1]), (2, 2, [3, 2, 2, 1])])
def test_fast_ops_lstm_gradient_is_that_of_the_output(depth, n_directions, sizes):
    arguments = example(depth, n_directions, sizes)
    Y, state = FAST.lstm_forward_training(*arguments)
    dY = np.random.default_rng(1).normal(size=Y.shape).astype("f")
    dX, d_params = FAST.backprop_lstm(dY, arguments[-1], arguments[0], state)
    # Of the two biases that are added, Thinc gives the second no gradient.
    is_second = np.zeros(d_params.shape, dtype=bool)
    place, nO = 0, 3
    for layer in range(depth):
        for _ in range(n_directions):
            place += 4 * nO * ((4 if layer == 0 else nO * n_directions) + 1 + nO)
            is_second[place : place + 4 * nO] = True
            place += 4 * nO
    assert not d_params[is_second].any()
    for array, gradient, places in (
        (arguments[0], d_params, np.flatnonzero(~is_second)[::7]),
        (arguments[3].reshape(-1), dX.reshape(-1), range(dX.size)),
    ):
        for place in places:
            sums = []
            for step in (0.01, -0.01):
                before = array[place]
                array[place] = before + step
                sums.append((FAST.lstm_forward_inference(*arguments) * dY).sum(dtype="d"))
                array[place] = before
            assert gradient[place] == pytest.approx((sums[0] - sums[1]) / 0.02, rel=0.02, abs=3e-3)


def test_fast_ops_lstm_of_nothing():
    arguments = example(1, 2, [])
    Y, state = FAST.lstm_forward_training(*arguments)
    assert Y.shape == (0, 6)
    dX, d_params = FAST.backprop_lstm(Y, arguments[-1], arguments[0], state)
    assert dX.shape == (0, 4) and not d_params.any()
