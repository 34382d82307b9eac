"""Turns queries and keys by the places of their tokens."""

from functools import lru_cache
from typing import Any, Callable, Tuple

import numpy
from thinc.api import Ops
from thinc.types import Floats2d, Ints1d

from .compiled import are_plain, load_kernels
from .dialog_cupy_ops import BASE, DialogCupyOps
from .dialog_fast_ops import DialogFastOps
from .gpu import kernels
from .known_numbers import derived
from .slices import slice_places


def rotate(ops: Ops, QKV: Floats2d, places: Any, n_heads: int) -> Callable[[Floats2d], None]:
    """Turn queries and keys, in place: cells i and i + half of a head are a point, which is
    turned by place / 10000^(2 i / width of a head).

    QKV (Floats2d): Queries, keys and values side by side, shape (n_tokens, 3 * width).
    places (Ints1d): Of each token in its sequence, from 0; shape (n_tokens,), int64.
    RETURNS (Callable): Turns the gradient of QKV back, in place.
    SOURCE: Su et al. 2021, https://arxiv.org/abs/2104.09864
    """
    n_tokens = QKV.shape[0]
    half = QKV.shape[1] // (6 * n_heads)

    def turn(X: Any, direction: float) -> None:
        if isinstance(ops, DialogFastOps) and are_plain(X, ndim=2):
            cos, sin = _tables(half, _highest(places))
            load_kernels("rotation").rotate(X, places, cos, sin, n_heads, direction)
            return
        if isinstance(ops, DialogCupyOps):
            kernels.rotate(X, None, ops.turns(places, half), half, direction)
            return
        # Of queries and keys: (n_tokens, 2, n_heads, 2, half)
        points = X.reshape(n_tokens, 3, n_heads, 2, half)[:, :2]
        left, right = points[..., 0, :], points[..., 1, :]
        c, s = derived(ops, _turns, places, half)  # (n_tokens, 1, 1, half)
        s = s * numpy.float32(direction)
        turned = left * c - right * s
        points[..., 1, :] = left * s + right * c
        points[..., 0, :] = turned

    turn(QKV, 1.0)
    return lambda dQKV: turn(dQKV, -1.0)


def token_places(ops: Ops, lengths: Ints1d, n_tokens: int) -> Any:
    """The place of each token in its sequence, from 0; shape (n_tokens,), int64."""
    (places,) = derived(ops, _places, lengths)
    return places


def _places(lengths: Any) -> Tuple[Any, ...]:
    return (slice_places(numpy.zeros(len(lengths), dtype="int64"), lengths.astype("int64")),)


def _turns(places: Any, half: int) -> Tuple[Any, ...]:
    """Cosine and sine of each token's turns."""
    cos, sin = _tables(half, _highest(places))
    return cos[places][:, None, None], sin[places][:, None, None]


def _highest(places: Any) -> int:
    """How many places tables have, at least as many as there are: a power of two."""
    highest = int(places.max()) if len(places) else 0
    return 1 << highest.bit_length()


@lru_cache(maxsize=16)
def _tables(half: int, n_places: int) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Cosine and sine of each turn, shape (n_places, half), float32."""
    speeds = BASE ** (-numpy.arange(half) / half)
    angles = numpy.arange(n_places)[:, None] * speeds
    return numpy.cos(angles).astype("f"), numpy.sin(angles).astype("f")
