"""Rotary position embeddings of queries and keys."""

from typing import Any

from .kernel import kernel


@kernel
def rotate(X: Any, places: Any, cos: Any, sin: Any, n_parts: int, direction: float) -> None:
    """Rotate points in place: cells i and i + half of each head.

    X (Floats2d): Shape (n_tokens, 3 * n_parts * 2 * half), float32; the first 2 * n_parts heads are
        rotated.
    places (Ints1d): Position of each token, shape (n_tokens,), int64, below n_places.
    cos, sin (Floats2d): Tables, shape (n_places, half).
    direction (float): 1, or -1 to rotate back.
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
