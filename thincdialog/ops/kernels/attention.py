"""Attention in sequences that lie one after another.

For each head, a block of queries is computed at once with all keys. Keys are transposed first, so
that the loops over them use vector instructions.
"""

from typing import Any

import numpy as np

from .elementary import exp
from .kernel import kernel
from .products import VECTOR, add_product, at
from .rows import highest

_F = np.float32
# Number of queries computed at once.
_ROWS = 64


@kernel
def _transpose(X: Any, n: int, Y: Any) -> None:
    """Write the first n rows of X into the first n columns of Y, and zeros into other columns."""
    floats, start, step = X
    Y[:, n:] = _F(0)
    for i in range(n):
        x = floats[start + i * step :]
        for j in range(Y.shape[0]):
            Y[j, i] = x[j]


@kernel
def _center(scores: Any, n_seen: int, factor: Any) -> None:
    """Subtract the highest score, so that exp does not overflow. Unseen keys get the weight 0."""
    scores[n_seen:] = -np.inf
    most = highest(scores) if n_seen else _F(0)
    for j in range(scores.shape[0]):
        scores[j] = (scores[j] - most) * factor


@kernel
def _exp(X: Any) -> None:
    """Replace each value by its exponential, in a single loop over all rows, because short rows
    would not fill vector registers."""
    for j in range(X.shape[0]):
        X[j] = exp(X[j])


@kernel
def attend(
    Q: Any, K: Any, V: Any, n_queries: Any, n_keys: Any, is_causal: bool,
    n_heads: int, factor: float, Y: Any, kept: Any,
) -> None:  # fmt: skip
    """Compute Y = softmax(factor Q Kᵀ) V of each head and sequence; Y must be zeros.

    Q, K, V (Tuple[Floats1d, int, int]): Matrices in the form of ``products``.
    n_queries, n_keys (Ints1d): Numbers of queries and keys of each sequence, int64.
    Y (Floats2d): Shape (n_queries, width), float32.
    kept (Floats1d): Filled with the weights by sequence, head, query and key; or empty.
    """
    width, most = Y.shape[1], n_keys.max() + VECTOR
    head, out = width // n_heads, (Y.reshape(-1), 0, width)
    turned, scores = np.empty(most * head, _F), np.empty(_ROWS * most, _F)
    query = key = cell = 0
    for s in range(n_queries.shape[0]):
        queries, keys = n_queries[s], n_keys[s]
        padded = (keys + VECTOR - 1) // VECTOR * VECTOR
        for column in range(0, width, head):
            _transpose(at(K, key, column), keys, turned[: head * padded].reshape(head, padded))
            for begin in range(0, queries, _ROWS):
                n, row = min(_ROWS, queries - begin), query + begin
                P, weights = scores[: n * padded].reshape(n, padded), (scores, 0, padded)
                P[:] = _F(0)
                add_product(at(Q, row, column), (turned, 0, padded), weights, n, head, padded)
                for i in range(n):
                    # If causal, the last query attends to all keys, the one before to all but one.
                    seen = keys - (queries - 1 - begin - i if is_causal else 0)
                    _center(P[i], max(seen, 0), _F(factor))
                _exp(P.reshape(-1))
                for i in range(n):
                    total = P[i].sum()
                    # A query without keys gets zeros.
                    part = _F(0) if total == 0 else _F(1) / total
                    for j in range(padded):
                        P[i, j] *= part
                    if kept.shape[0]:
                        kept[cell : cell + keys] = P[i, :keys]
                        cell += keys
                add_product(weights, at(V, key, column), at(out, row, column), n, keys, head)
        query += queries
        key += keys
