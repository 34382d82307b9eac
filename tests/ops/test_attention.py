"""Attention without padding, beside the plain formula, sequence by sequence."""

import numpy as np
import pytest

from tests.ops.array_backends import EACH_OPS
from thincdialog.ops.attention import attend, attend_with

LENGTHS = [[3, 1, 4, 0, 3, 2], [5], [0, 0], [2] * 7]


def softmax(X):
    powers = np.exp(X - X.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attend_slowly(QKV, lengths, n_heads):
    n_tokens, width = QKV.shape[0], QKV.shape[1] // 3
    Y = np.zeros((n_tokens, width))
    head, start = width // n_heads, 0
    for length in lengths:
        of_one = slice(start, start + length)
        for first in range(0, width if length else 0, head):
            Q, K, V = (QKV[of_one, part * width + first :][:, :head] for part in range(3))
            Y[of_one, first : first + head] = softmax(Q @ K.T / np.sqrt(head)) @ V
        start += length
    return Y


def draw(*shape):
    return np.random.default_rng(0).normal(size=shape)


def slope(function, X, dY):
    """The gradient of (function(X) * dY).sum() by X, cell by cell."""
    dX = np.zeros_like(X)
    for cell in np.ndindex(X.shape):
        for sign in (1, -1):
            moved = X.copy()
            moved[cell] += sign * 1e-5
            dX[cell] += sign * (function(moved) * dY).sum() / 2e-5
    return dX


@EACH_OPS
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("n_heads", [1, 3])
def test_attention_is_the_formula(ops, lengths, n_heads):
    QKV, dY = draw(sum(lengths), 18), draw(sum(lengths), 6) + 1
    Y, backprop = attend(ops, ops.asarray2f(QKV), ops.asarray1i(lengths), n_heads)
    np.testing.assert_allclose(
        ops.to_numpy(Y), attend_slowly(QKV, lengths, n_heads), rtol=1e-4, atol=1e-5
    )
    expected = slope(lambda X: attend_slowly(X, lengths, n_heads), QKV, dY)
    dQKV = ops.to_numpy(backprop(ops.asarray2f(dY)))
    np.testing.assert_allclose(dQKV, expected, rtol=1e-3, atol=1e-4)


def attend_with_slowly(queries, X, lengths):
    starts = np.cumsum(lengths) - lengths
    Y = np.zeros((len(lengths), *queries.shape))
    for number, (start, length) in enumerate(zip(starts, lengths)):
        if length:
            tokens = X[start : start + length]
            Y[number] = softmax(queries @ tokens.T) @ tokens
    return Y


@EACH_OPS
@pytest.mark.parametrize("lengths", LENGTHS)
def test_attention_of_queries_is_the_formula(ops, lengths):
    queries, X, dY = draw(2, 4), draw(sum(lengths), 4) - 0.5, draw(len(lengths), 2, 4) + 1
    Y, backprop = attend_with(ops, ops.asarray2f(queries), ops.asarray2f(X), ops.asarray1i(lengths))
    np.testing.assert_allclose(
        ops.to_numpy(Y), attend_with_slowly(queries, X, lengths), rtol=1e-4, atol=1e-5
    )
    d_queries, dX = map(ops.to_numpy, backprop(ops.asarray3f(dY)))
    by_queries = slope(lambda given: attend_with_slowly(given, X, lengths), queries, dY)
    np.testing.assert_allclose(d_queries, by_queries, rtol=1e-3, atol=1e-4)
    by_tokens = slope(lambda given: attend_with_slowly(queries, given, lengths), X, dY)
    np.testing.assert_allclose(dX, by_tokens, rtol=1e-3, atol=1e-4)
