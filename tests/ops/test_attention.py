"""Attention without padding, compared with the plain formula, sequence by sequence."""

import numpy as np
import pytest

from tests.ops.array_backends import EACH_OPS
from thincdialog.ops.attention import across, attend, within

LENGTHS = [[3, 1, 4, 0, 3, 2], [5], [0, 0], [2] * 7]
# Self-attention in both directions and in one, attention across (one sequence without keys, one
# without queries), and a decoder's steps with keys of earlier ones.
SPANS = {
    "within": within(np.array([3, 1, 4, 0, 3, 2])),
    "causal": within(np.array([3, 1, 4, 0, 3, 2]), is_causal=True),
    "across": across(np.array([2, 2, 0, 1, 2]), np.array([4, 0, 3, 1, 4])),
    "cached": across(np.array([1, 1, 2, 1]), np.array([5, 1, 4, 3]), is_causal=True),
}


def softmax(X):
    powers = np.exp(X - X.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attend_slowly(Q, K, V, spans, n_heads, scale):
    Y, head = np.zeros(Q.shape), Q.shape[1] // n_heads
    first_query = first_key = 0
    for n_queries, n_keys in zip(spans.n_queries, spans.n_keys):
        for query in range(n_queries):
            # The last query sees all keys.
            n_seen = n_keys - (n_queries - 1 - query) if spans.is_causal else n_keys
            keys = slice(first_key, first_key + n_seen)
            for start in range(0, Q.shape[1] if n_seen else 0, head):
                cells = slice(start, start + head)
                scores = Q[first_query + query, cells] @ K[keys, cells].T * scale
                Y[first_query + query, cells] = softmax(scores) @ V[keys, cells]
        first_query, first_key = first_query + n_queries, first_key + n_keys
    return Y


def draw(*shape):
    return np.random.default_rng(0).normal(size=shape)


def slope(function, X, dY):
    """Return the gradient of (function(X) * dY).sum() with respect to X, cell by cell."""
    dX = np.zeros_like(X)
    for cell in np.ndindex(X.shape):
        for sign in (1, -1):
            moved = X.copy()
            moved[cell] += sign * 1e-5
            dX[cell] += sign * (function(moved) * dY).sum() / 2e-5
    return dX


def check(ops, spans, n_heads, scale=None):
    rng = np.random.default_rng(0)
    n_queries, n_keys = int(spans.n_queries.sum()), int(spans.n_keys.sum())
    arrays = [rng.normal(size=(n, 6)) for n in (n_queries, n_keys, n_keys)]
    dY = rng.normal(size=(n_queries, 6)) + 1
    settings = (spans, n_heads, scale or (6 // n_heads) ** -0.5)
    Y, backprop = attend(ops, *map(ops.asarray2f, arrays), spans, n_heads, scale=scale)
    wanted = attend_slowly(*arrays, *settings)
    np.testing.assert_allclose(ops.to_numpy(Y), wanted, rtol=1e-4, atol=1e-5)
    for number, found in enumerate(backprop(ops.asarray2f(dY))):

        def moved(X, number=number):
            given = [*arrays[:number], X, *arrays[number + 1 :]]
            return attend_slowly(*given, *settings)

        expected = slope(moved, arrays[number], dY)
        np.testing.assert_allclose(ops.to_numpy(found), expected, rtol=1e-3, atol=1e-4)


@EACH_OPS
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("n_heads", [1, 3])
def test_attention_is_the_formula(ops, lengths, n_heads):
    check(ops, within(np.array(lengths)), n_heads)


@EACH_OPS
@pytest.mark.parametrize("kind", SPANS)
def test_attention_of_all_spans_is_the_formula(ops, kind):
    check(ops, SPANS[kind], 2)
    check(ops, SPANS[kind], 1, scale=1.0)


@EACH_OPS
def test_attention_of_one_step_with_cached_keys_is_the_last_row_of_causal_attention(ops):
    lengths = np.array([3, 1, 4])
    Q, K, V = (ops.asarray2f(draw(8, 6) + part) for part in range(3))
    whole, _ = attend(ops, Q, K, V, within(lengths, is_causal=True), 2)
    last = lengths.cumsum() - 1
    one = across(np.ones(3, dtype="i"), lengths, is_causal=True)
    step, _ = attend(ops, Q[ops.asarray1i(last.tolist())], K, V, one, 2)
    np.testing.assert_allclose(ops.to_numpy(step), ops.to_numpy(whole)[last], rtol=1e-5)


def test_attention_needs_a_key_for_each_causal_query():
    with pytest.raises(ValueError, match="causal attention needs a key for each query"):
        across(np.array([1, 3]), np.array([1, 2]), is_causal=True)


@EACH_OPS
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_of_lengths_around_those_of_vectors_is_the_formula(ops, is_causal):
    spans = within(np.array([70, 9, 15, 16, 17, 33]), is_causal=is_causal)
    Q, K, V = (draw(160, 32) + part for part in range(3))
    Y, _ = attend(ops, *map(ops.asarray2f, (Q, K, V)), spans, 2)
    wanted = attend_slowly(Q, K, V, spans, 2, 16**-0.5)
    np.testing.assert_allclose(ops.to_numpy(Y), wanted, rtol=1e-4, atol=1e-5)
