"""Attention of sequences that lie one after another.

Head by head: what is multiplied is copied to scratch memory, contiguous and with as many keys as
fill vectors, and some queries at once are multiplied with all keys.
"""

from typing import Any

import numpy as np

from .elementary import exp
from .kernel import kernel
from .vectors import add_product

_F = np.float32
# Queries at once; and keys come in multiples of a vector's floats.
_ROWS, _VECTOR = 64, 16
_LOWEST = _F(np.finfo(np.float32).min)


@kernel
def _part(scratch: Any, number: int, n: int, width: int) -> Any:
    part = scratch[number][: n * width].reshape(n, width)
    part[:] = _F(0)
    return part


@kernel
def _copy(X: Any, start: int, stride: int, n: int, Y: Any) -> None:
    for i in range(n):
        x, y = X[start + i * stride :], Y[i]
        for j in range(y.shape[0]):
            y[j] = x[j]


@kernel
def _turn(X: Any, start: int, stride: int, n: int, Y: Any) -> None:
    for i in range(n):
        x = X[start + i * stride :]
        for j in range(Y.shape[0]):
            Y[j, i] = x[j]


@kernel
def _center(scores: Any, n_seen: int, factor: Any) -> None:
    # Take the highest away, so that no power is too large; those that are not seen become 0.
    scores[n_seen:] = -np.inf
    highest = _LOWEST
    for j in range(scores.shape[0]):
        highest = max(highest, scores[j])
    for j in range(scores.shape[0]):
        scores[j] = (scores[j] - highest) * factor


@kernel
def _exp(X: Any, Y: Any) -> None:
    # Of all rows at once: short ones would not fill vectors.
    for j in range(X.shape[0]):
        Y[j] = exp(X[j])


@kernel
def attend(
    Q: Any, K: Any, V: Any, strides: Any, n_queries: Any, n_keys: Any, is_causal: bool,
    n_heads: int, factor: float, Y: Any, kept: Any,
) -> None:  # fmt: skip
    """Y = softmax(factor Q Kᵀ) V of each head and sequence; Y begins as zeros.

    Q, K, V (Floats1d): From the first cell to the last; a row begins a stride after the one
        before it.
    strides (Tuple[int, int, int]): Of these.
    n_queries, n_keys (Ints1d): Of each sequence, int64.
    Y (Floats2d): Shape (n_queries, width), float32.
    kept (Floats1d): Takes the weights of each sequence, head, query and key in turn; or is empty.
    """
    width, most = Y.shape[1], (n_keys.max() + _VECTOR - 1) // _VECTOR * _VECTOR
    head = width // n_heads
    of_keys, of_queries = np.empty((2, most * head), _F), np.empty((2, _ROWS * head), _F)
    scores = np.empty((2, _ROWS * most), _F)
    query = key = cell = 0
    for s in range(n_queries.shape[0]):
        queries, keys = n_queries[s], n_keys[s]
        padded = (keys + _VECTOR - 1) // _VECTOR * _VECTOR
        for column in range(0, width, head):
            turned, v = _part(of_keys, 0, head, padded), _part(of_keys, 1, padded, head)
            _turn(K, key * strides[1] + column, strides[1], keys, turned)
            _copy(V, key * strides[2] + column, strides[2], keys, v)
            for begin in range(0, queries, _ROWS):
                n = min(_ROWS, queries - begin)
                q, y = _part(of_queries, 0, n, head), _part(of_queries, 1, n, head)
                S, P = _part(scores, 0, n, padded), _part(scores, 1, n, padded)
                _copy(Q, (query + begin) * strides[0] + column, strides[0], n, q)
                add_product(q, turned, S)
                for i in range(n):
                    # The last query attends to all keys.
                    seen = keys - (queries - 1 - begin - i if is_causal else 0)
                    _center(S[i], max(seen, 0), _F(factor))
                _exp(S.reshape(-1), P.reshape(-1))
                add_product(P, v, y)
                for i in range(n):
                    total = P[i].sum()
                    # A query without keys gets zeros.
                    part = _F(0) if total == 0 else _F(1) / total
                    Y[query + begin + i, column : column + head] = y[i] * part
                    if kept.shape[0]:
                        kept[cell : cell + keys] = P[i][:keys] * part
                        cell += keys
        query += queries
        key += keys
