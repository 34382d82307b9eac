"""Turns queries and keys by the places of their tokens."""

from functools import lru_cache
from typing import Any, Callable, Tuple, cast

import numpy
from thinc.api import Ops
from thinc.types import Floats2d, Ints1d

from ..ops.bags import bag_numbers

# Slowest turn: once in about this many tokens times two pi.
_BASE = 10000.0


def rotate(ops: Ops, QKV: Floats2d, places: Any, n_heads: int) -> Callable[[Floats2d], None]:
    """Turn queries and keys, in place: cells i and i + half of a head are a point, which is
    turned by place / 10000^(2 i / width of a head).

    QKV (Floats2d): Queries, keys and values side by side, shape (n_tokens, 3 * width).
    places (Ints1d): Of each token in its sequence, from 0; shape (n_tokens,).
    RETURNS (Callable): Turns the gradient of QKV back, in place.
    SOURCE: Su et al. 2021, https://arxiv.org/abs/2104.09864
    """
    n_tokens = QKV.shape[0]
    half = QKV.shape[1] // (6 * n_heads)
    highest = int(places.max()) + 1 if n_tokens else 0
    tables = _tables(half, 1 << max(highest - 1, 0).bit_length())
    # (n_tokens, 1, 1, half)
    cos, sin = (ops.xp.asarray(table)[places][:, None, None] for table in tables)

    def turn(X: Floats2d, sin: Any) -> None:
        # Of queries and keys: (n_tokens, 2, n_heads, 2, half)
        points = cast(Any, X).reshape(n_tokens, 3, n_heads, 2, half)[:, :2]
        left, right = points[..., 0, :], points[..., 1, :]
        turned = left * cos - right * sin
        points[..., 1, :] = left * sin + right * cos
        points[..., 0, :] = turned

    turn(QKV, sin)
    return lambda dQKV: turn(dQKV, -sin)


def token_places(ops: Ops, lengths: Ints1d, n_tokens: int) -> Any:
    """The place of each token in its sequence, from 0; shape (n_tokens,), int64."""
    starts = lengths.cumsum() - lengths
    return ops.xp.arange(n_tokens) - starts[bag_numbers(ops, lengths, n_tokens)]


@lru_cache(maxsize=16)
def _tables(half: int, n_places: int) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Cosine and sine of each turn, shape (n_places, half), float32."""
    speeds = _BASE ** (-numpy.arange(half) / half)
    angles = numpy.arange(n_places)[:, None] * speeds
    return numpy.cos(angles).astype("f"), numpy.sin(angles).astype("f")
