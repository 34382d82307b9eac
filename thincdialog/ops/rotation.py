"""Rotary position embeddings of queries and keys."""

from functools import lru_cache
from typing import Any, Callable, Tuple

import numpy
from thinc.api import Ops
from thinc.types import Floats2d

from .compiled import are_plain, load_kernels
from .devices import upload
from .dialog_cupy_ops import DialogCupyOps
from .dialog_fast_ops import DialogFastOps
from .gpu import kernels

# The slowest rotation takes about this many tokens times two pi for one turn.
_BASE = 10000.0


def rotate(ops: Ops, QKV: Floats2d, places: Any, n_heads: int) -> Callable[[Floats2d], None]:
    """Rotate queries and keys by the positions of their tokens, in place. Cells i and i + half of a
    head form a point, which is rotated by the angle place / 10000^(2 i / width of a head).

    QKV (Floats2d): Queries, keys and values side by side, shape (n_tokens, 3 * width).
    places (Ints1d): Position of each token in its sequence, from 0; shape (n_tokens,), int64, on
        the host.
    RETURNS (Callable): Rotates the gradient of QKV back, in place.
    SOURCE: Su et al. 2021, https://arxiv.org/abs/2104.09864
    """
    n_tokens = QKV.shape[0]
    half = QKV.shape[1] // (6 * n_heads)
    n_places = 1 << int(places.max(initial=0)).bit_length()
    cos, sin = _tables(half, n_places)
    if isinstance(ops, DialogFastOps) and are_plain(QKV, ndim=2):
        turn_compiled = load_kernels("rotation").rotate
        turn_compiled(QKV, places, cos, sin, n_heads, 1.0)
        return lambda dQKV: turn_compiled(dQKV, places, cos, sin, n_heads, -1.0)
    if isinstance(ops, DialogCupyOps):
        (on_device,) = upload(ops, places.astype("i"))
        tables = _tables_on_device(ops, half, n_places)
        kernels.rotate(QKV, on_device, tables, 1.0)
        return lambda dQKV: kernels.rotate(dQKV, on_device, tables, -1.0)
    c, s = (each[places][:, None, None] for each in (cos, sin))  # (n_tokens, 1, 1, half)

    def turn(X: Any, s: Any) -> None:
        # Of queries and keys: (n_tokens, 2, n_heads, 2, half)
        points = X.reshape(n_tokens, 3, n_heads, 2, half)[:, :2]
        left, right = points[..., 0, :], points[..., 1, :]
        turned = left * c - right * s
        points[..., 1, :] = left * s + right * c
        points[..., 0, :] = turned

    turn(QKV, s)
    return lambda dQKV: turn(dQKV, -s)


@lru_cache(maxsize=16)
def _tables_on_device(ops: Ops, half: int, n_places: int) -> Tuple[Any, Any]:
    return upload(ops, *_tables(half, n_places))


@lru_cache(maxsize=16)
def _tables(half: int, n_places: int) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Return the cosine and sine of each angle, shape (n_places, half), float32."""
    speeds = _BASE ** (-numpy.arange(half) / half)
    angles = numpy.arange(n_places)[:, None] * speeds
    return numpy.cos(angles).astype("f"), numpy.sin(angles).astype("f")
