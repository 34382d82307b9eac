"""Queries and keys turned by the places of their tokens."""

from typing import Any

from .kernel import kernel


@kernel
def rotate(X: Any, places: Any, cos: Any, sin: Any, n_parts: int, direction: float) -> None:
    """Turn points in place: cells i and i + half of each head.

    X (n_tokens, 3 * n_parts * 2 * half) float32, of which the first 2 * n_parts heads are
    turned; places (n_tokens,) int64, below the tables' rows; cos and sin (n_places, half).
    direction: 1, or -1 to turn back.
    """
    half = cos.shape[1]
    sign = sin.dtype.type(direction)
    for token in range(X.shape[0]):
        c, s = cos[places[token]], sin[places[token]]
        for head in range(2 * n_parts):
            left = X[token, 2 * half * head : 2 * half * head + half]
            right = X[token, 2 * half * head + half : 2 * half * (head + 1)]
            for i in range(half):
                x, y, turn = left[i], right[i], sign * s[i]
                left[i] = x * c[i] - y * turn
                right[i] = x * turn + y * c[i]
