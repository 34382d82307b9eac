import numpy as np
import pytest

from thincdialog.ops.compiled import load_kernels

SETTINGS = {
    "scale": 0.5, "b1": 0.9, "b2": 0.999, "least": 0.05, "eps": 1e-8, "rate": 0.003,
    "momentum": 0.7, "newest": 0.3, "decay": 0.01,
}  # fmt: skip


def adam(W, dW, m1, m2, *, scale, b1, b2, least, eps, rate, momentum, newest, decay):
    """The formula, in double precision."""
    W, g, m1, m2 = (a.astype("d") for a in (W, dW * np.float32(scale), m1, m2))
    m1 = b1 * m1 + (1 - b1) * g
    m2 = np.maximum(b2 * m2 + (1 - b2) * g * g, least * m1 * m1)
    step = (momentum * m1 + newest * g) / (np.sqrt(m2) + eps)
    return (1 - decay) * (W - rate * step), m1, m2


def arrays(shape, seed=0):
    random = np.random.default_rng(seed)
    W, dW, m1 = (random.normal(size=shape).astype("f") for _ in range(3))
    return [W, dW, m1, random.random(shape).astype("f")]


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("n", [0, 1, 7, 1024, 2500])
def test_adam_dense_is_adam(n, clear):
    state = arrays((n,))
    expected, dW = adam(*state, **SETTINGS), state[1].copy()
    load_kernels("steps").adam_dense(*state, tuple(SETTINGS.values()), clear)
    for found, wanted in zip([state[0], *state[2:]], expected):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-7)
    np.testing.assert_array_equal(state[1], 0 * dW if clear else dW)


@pytest.mark.parametrize("rows", [[], [3], [0, 2, 5]])
@pytest.mark.parametrize("width", [1, 33])
def test_adam_rows_changes_only_its_rows(rows, width):
    state = arrays((6, width))
    before, expected = [a.copy() for a in state], adam(*state, **SETTINGS)
    numbers = np.asarray(rows, dtype="int64")
    W, dW, *moments = state
    load_kernels("steps").adam_rows(W, dW[numbers], *moments, numbers, tuple(SETTINGS.values()))
    others = np.setdiff1d(np.arange(6), rows)
    for found, was, wanted in zip([state[0], *state[2:]], [before[0], *before[2:]], expected):
        np.testing.assert_allclose(found[numbers], wanted[numbers], rtol=2e-6, atol=1e-7)
        np.testing.assert_array_equal(found[others], was[others])


def test_adam_of_a_gradient_that_is_not_finite_is_not_finite():
    state = arrays((3,))
    state[1][1] = np.nan
    load_kernels("steps").adam_dense(*state, tuple(SETTINGS.values()), False)
    assert np.isfinite(state[0]).tolist() == [True, False, True]
