import numpy as np
import pytest
from thinc.api import Ragged, fix_random_seed

from tests.ops.array_backends import backend, made
from thincdialog.layers.bilstm import BiLSTM
from thincdialog.ops.dialog_ops import exact_products


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def one_direction(X, W, U, b):
    """Compute the formulas of the docstring, token by token, in double precision."""
    nH = U.shape[1]
    h, c, rows = np.zeros(nH), np.zeros(nH), []
    for x in X.astype("d"):
        i, f, o, g = np.split(W @ x + U @ h + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.array(rows)


def test_bilstm_equals_the_formulas():
    X = vectors([3, 1, 6, 2])
    layer = made(lambda: BiLSTM(8), X)
    Y = layer.predict(X).dataXd
    W, U, b = (layer.get_param(name) for name in "WUb")
    start = 0
    for length in X.lengths:
        part = X.dataXd[start : start + length]
        forwards = one_direction(part, W[0], U[0], b[0])
        backwards = one_direction(part[::-1], W[1], U[1], b[1])[::-1]
        wanted = np.concatenate([forwards, backwards], axis=1)
        np.testing.assert_allclose(Y[start : start + length], wanted, rtol=1e-4, atol=1e-6)
        start += length


def test_bilstm_large_inputs_do_not_overflow():
    X = Ragged(np.full((3, 2), 1e4, dtype="f"), np.array([3], "i"))
    assert np.isfinite(made(lambda: BiLSTM(4), X).predict(X).dataXd).all()


def vectors(lengths):
    X = np.random.default_rng(0).normal(size=(sum(lengths), 5)).astype("f")
    return Ragged(X, np.array(lengths, "i"))


def outputs_and_gradients(name, X, nO):
    """Return the outputs and gradients of a layer with one of the backends."""
    with backend(name):
        fix_random_seed(0)
        layer = BiLSTM(nO, X.dataXd.shape[1])
        layer.initialize()
        Y, backprop = layer.begin_update(X)
        dX = backprop(Y).dataXd
    gradients = [layer.get_grad(name) for name in "WUb"] if X.dataXd.shape[0] else []
    return [Y.dataXd, dX, *gradients]


def test_bilstm_odd_width_is_refused():
    with pytest.raises(ValueError, match="nO = 5, but it must be even"):
        BiLSTM(5)


@pytest.mark.parametrize("nO", [2, 8, 66])
@pytest.mark.parametrize("lengths", [[1], [3, 0, 1, 6, 2, 6], [4] * 9, [0, 0]], ids=str)
def test_bilstm_compiled_steps_equal_single_steps(lengths, nO):
    X = vectors(lengths)
    plain, compiled = (outputs_and_gradients(name, X, nO) for name in (-1, "fast"))
    for found, expected in zip(compiled, plain):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_bilstm_exact_products_are_exact_with_compiled_ops():
    X = vectors([4, 5, 3])
    with backend("fast") as ops:
        layer = BiLSTM(8)
        layer.initialize(X=X)
        with exact_products(ops):
            alone = layer.predict(Ragged(X.dataXd[:4], X.lengths[:1])).dataXd
            together = layer.predict(X).dataXd
    assert together[:4].tobytes() == alone.tobytes()
