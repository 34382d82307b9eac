"""Starts the kernels of ``kernels.cu`` and ``attention.cu``. All arrays are CuPy's, float32 or int32, contiguous."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Tuple

import numpy

# Threads in a block; blocks where a kernel has no number of its own.
_THREADS, _BLOCKS = 128, 256
# Blocks of ``square_sums``: one place each in the sums.
N_SUMS = 64
_NO_ARRAY = numpy.int64(0)


@lru_cache(maxsize=None)
def source(file: str = "kernels") -> str:
    """Kernels, in CUDA C++.

    file (str): "kernels", or "attention" for those that are compiled for one width of heads.
    """
    return (Path(__file__).parent / f"{file}.cu").read_text(encoding="utf8")


@lru_cache(maxsize=None)
def _kernel(name: str, head: int) -> Any:
    import cupy

    if head:
        return cupy.RawKernel(source("attention"), name, options=(f"-DHEAD={head}",))
    return cupy.RawKernel(source(), name)


def _start(name: str, n_blocks: int, *arguments: Any, head: int = 0) -> None:
    if n_blocks:  # Without rows there is nothing to do, and CUDA refuses no blocks.
        plain = (_NO_ARRAY if each is None else each for each in arguments)
        _kernel(name, head)((n_blocks,), (_THREADS,), tuple(plain))


def _int(number: int) -> Any:
    return numpy.int32(number)


def _floats(array: Any) -> Any:
    import cupy

    return cupy.ascontiguousarray(array, dtype="f")


def _of_size(n: int) -> int:
    """Blocks for so many cells."""
    return min(_BLOCKS, -(-n // _THREADS))


def sum_rows(table: Any, ids: Any, starts: Any, *, factors: Any = None, weights: Any = None) -> Any:
    """Of each group the sum of some rows of a table.

    table (Floats2d): Shape (n_rows, width).
    ids (Optional[Ints1d]): Rows of all groups, one after the other; None for all in their order.
    starts (Ints1d): Where each group begins in them, and the end of the last.
    factors (Optional[Floats1d]): Of each group's sum.
    weights (Optional[Floats1d]): Of each row of the table.
    RETURNS (Floats2d): Shape (n_groups, width); zeros for an empty group.
    """
    import cupy

    n, width = starts.shape[0] - 1, table.shape[1]
    out, table = cupy.empty((n, width), dtype="f"), _floats(table)
    arguments = (out, table, ids, starts, factors, weights, _int(n), _int(width))
    _start("sum_rows", n if width else 0, *arguments)
    return out


def max_rows(X: Any, starts: Any) -> Tuple[Any, Any]:
    """The highest cell of each column of each group, which has one row or more, and its place."""
    import cupy

    n, width = starts.shape[0] - 1, X.shape[1]
    highest, which = cupy.empty((n, width), dtype="f"), cupy.empty((n, width), dtype="i")
    _start("max_rows", n, highest, which, _floats(X), starts, _int(n), _int(width))
    return highest, which


def backprop_max_rows(d_highest: Any, which: Any, starts: Any, n_rows: int) -> Any:
    """The gradient of the rows."""
    import cupy

    n, width = which.shape
    dX = cupy.empty((n_rows, width), dtype="f")
    arguments = (dX, _floats(d_highest), which, starts, _int(n), _int(width))
    _start("backprop_max_rows", n, *arguments)
    return dX


def windows(X: Any, bounds: Any, size: int) -> Any:
    """Each row with its neighbours, ``size`` on each side.

    bounds (Ints2d): Where each row's sequence begins and ends, shape (2, n_rows).
    """
    import cupy

    n, width = X.shape
    out = cupy.empty((n, width * (2 * size + 1)), dtype="f")
    _start("windows", n, out, _floats(X), bounds, _int(n), _int(width), _int(size))
    return out


def backprop_windows(dY: Any, bounds: Any, size: int) -> Any:
    """The gradient of the rows."""
    import cupy

    n, width = dY.shape[0], dY.shape[1] // (2 * size + 1)
    dX = cupy.empty((n, width), dtype="f")
    _start("backprop_windows", n, dX, _floats(dY), bounds, _int(n), _int(width), _int(size))
    return dX


def backprop_maxout(dY: Any, which: Any, n_pieces: int) -> Any:
    """The gradient of the pieces, shape (*dY.shape, n_pieces)."""
    import cupy

    dX = cupy.empty((*dY.shape, n_pieces), dtype="f")
    sizes = (numpy.int64(dY.size), _int(n_pieces))
    _start("backprop_maxout", _of_size(dX.size), dX, _floats(dY), which, *sizes)
    return dX


def square_sums(sums: Any, X: Any) -> None:
    """Write sums of squares, ``N_SUMS`` of them, whose sum is that of all."""
    _start("square_sums", N_SUMS, sums, _floats(X), numpy.int64(X.size))


def clip_factor(sums: Any, scale: float, limit: float) -> Any:
    """Of the sums of squares of a gradient: its norm once it is scaled; and what it is to be
    multiplied by to be scaled and clipped, 0 if it is not finite. Shape (2,)."""
    import cupy

    found = cupy.empty((2,), dtype="f")
    _start("clip_factor", 1, found, sums, _int(sums.size), float(scale), float(limit))
    return found


def adam_rows(
    W: Any, dW: Any, mom1: Any, mom2: Any, rows: Any, found: Any, settings: Tuple[float, ...]
) -> None:
    """A step of Adam for some rows of W (int32; all, if None), in place.

    found (Floats1d): Of ``clip_factor``.
    settings (Tuple[float, ...]): See the kernel.
    """
    width = 1 if rows is None else W.shape[1]
    n = dW.size if rows is None else rows.shape[0]
    sizes = (numpy.int64(n), _int(width))
    arguments = (W, _floats(dW), mom1, mom2, rows, found, *sizes, *map(float, settings))
    _start("adam_rows", _of_size(n * width), *arguments)


def softmax_loss(
    Z: Any, targets: Any, allowed: Any = None, weights: Any = None, smoothing: float = 0.0
) -> Tuple[Any, Any]:
    """Softmax cross-entropy: the gradient and the loss of each row."""
    import cupy

    n, width = Z.shape
    gradient, losses = cupy.empty((n, width), dtype="f"), cupy.empty((n,), dtype="f")
    targets = cupy.ascontiguousarray(targets, dtype="i")
    allowed = None if allowed is None else cupy.ascontiguousarray(allowed, dtype="?")
    weights = None if weights is None else _floats(weights)
    given = (gradient, losses, _floats(Z), targets, allowed, weights)
    _start("softmax_loss", n, *given, _int(n), _int(width), float(smoothing))
    return gradient, losses


def l2_normalise(X: Any, shortest: float) -> Tuple[Any, Any]:
    """See ``DialogFastOps``."""
    import cupy

    (n, width), X = X.shape, _floats(X)
    Y, lengths = cupy.empty_like(X), cupy.empty((n,), dtype="f")
    _start("l2_normalise", n, Y, lengths, X, _int(n), _int(width), float(shortest))
    return Y, lengths


def backprop_l2_normalise(dY: Any, Y: Any, lengths: Any, shortest: float) -> Any:
    """See ``DialogFastOps``."""
    import cupy

    n, width = Y.shape
    dX = cupy.empty_like(Y)
    arguments = (dX, _floats(dY), Y, lengths, _int(n), _int(width), float(shortest))
    _start("backprop_l2_normalise", n, *arguments)
    return dX


def layer_norm(X: Any, G: Any, b: Any, least_variance: float) -> Tuple[Any, Any, Any]:
    """See ``DialogFastOps``."""
    import cupy

    (n, width), X = X.shape, _floats(X)
    Y, hat, scales = cupy.empty_like(X), cupy.empty_like(X), cupy.empty((n,), dtype="f")
    sizes = (_int(n), _int(width), float(least_variance))
    _start("layer_norm", n, Y, hat, scales, X, _floats(G), _floats(b), *sizes)
    return Y, hat, scales


def backprop_layer_norm(
    dY: Any, G: Any, hat: Any, scales: Any, dG: Any = None, db: Any = None, more: Any = None
) -> Tuple[Any, Any, Any]:
    """See ``DialogFastOps``.

    dG, db (Optional[Floats1d]): What belongs to the gradients of G and b is added there.
    more (Optional[Floats2d]): Added to the gradient of X.
    """
    import cupy

    (n, width), dY = hat.shape, _floats(dY)
    dX = cupy.empty_like(hat)
    dG, db = (cupy.zeros_like(G) if each is None else each for each in (dG, db))
    sums, n_blocks, n_chunks = _column_sums(n, 2 * width)
    arguments = (dX, dG, db, *sums, dY, _floats(G), hat, scales, more, _int(n), _int(width))
    _start("backprop_layer_norm", n + n_blocks, *arguments, _int(n), _int(n_chunks))
    return dX, dG, db


def dropout_mask(shape: Any, rate: float, seed: int, number: int) -> Any:
    """Factors: 0 with the probability of the rate, else 1 / (1 - rate).

    number (int): Of the mask; those of other numbers and seeds are independent.
    """
    import cupy

    mask = cupy.empty(shape, dtype="f")
    place = (numpy.uint64(seed), numpy.uint64(number))
    _start("dropout_mask", _of_size(mask.size), mask, numpy.int64(mask.size), *place, float(rate))
    return mask


# --- transformers ---------------------------------------------------------------------

# Columns that have a counter; rows of a block that sums columns, at least, and most blocks.
_GROUP, _MOST_GROUPS, _CHUNK_ROWS, _MOST_CHUNKS = 32, 4096, 16, 64
# Probability of zeroing a cell, seed and number of a mask; see ``dropout_mask``.
Mask = Tuple[float, int, int]


@lru_cache(maxsize=None)
def _counters(device: int) -> Any:
    """Zeros, in which the blocks of a kernel count; it leaves zeros."""
    import cupy

    return cupy.zeros((_MOST_GROUPS,), dtype="i")


def _column_sums(n_rows: int, width: int) -> Tuple[Tuple[Any, Any], int, int]:
    """For a kernel that sums columns: room for its parts, and counters; how many blocks it has;
    and how many share the same columns."""
    import cupy

    n_chunks, n_groups = min(_MOST_CHUNKS, -(-n_rows // _CHUNK_ROWS)), -(-width // _GROUP)
    if n_groups > _MOST_GROUPS:
        raise ValueError(f"kernels of a GPU sum {_GROUP * _MOST_GROUPS} columns, not {width}")
    parts = cupy.empty((n_chunks, width), dtype="f")
    return (parts, _counters(parts.device.id)), n_chunks * n_groups, n_chunks


def _place(mask: Mask) -> Tuple[Any, ...]:
    rate, seed, number = mask
    return numpy.uint64(seed), numpy.uint64(number), float(rate)


def add_dropped(X: Any, Z: Any, b: Any, mask: Mask) -> Any:
    """X + dropout(Z + b)."""
    import cupy

    (n, width), H = X.shape, cupy.empty_like(X)
    arguments = (H, X, Z, b, None, None, None, None, None, _int(n), _int(width), *_place(mask))
    _start("add_dropped", n, *arguments, 0.0)
    return H


def add_dropped_and_normalise(
    X: Any, Z: Any, b: Any, mask: Mask, G: Any, bias: Any, least_variance: float
) -> Tuple[Any, Any, Any, Any]:
    """X + dropout(Z + b), and what ``layer_norm`` makes of it."""
    import cupy

    (n, width), scales = X.shape, cupy.empty(X.shape[:1], dtype="f")
    H, Y, hat = (cupy.empty_like(X) for _ in range(3))
    arguments = (H, X, Z, b, Y, hat, scales, G, bias, _int(n), _int(width), *_place(mask))
    _start("add_dropped", n, *arguments, float(least_variance))
    return H, Y, hat, scales


def backprop_add_dropped(dH: Any, db: Any, mask: Mask) -> Any:
    """The gradient of Z; that of b is added to ``db``."""
    import cupy

    (n, width), dZ = dH.shape, cupy.empty_like(dH)
    sums, n_blocks, n_chunks = _column_sums(n, width)
    sizes = (_int(n), _int(width), _int(n_chunks))
    _start("backprop_add_dropped", n_blocks, dZ, db, *sums, dH, *sizes, *_place(mask))
    return dZ


def activate(Z: Any, b: Any, is_gelu: bool) -> Any:
    """GELU, or else ReLU, of Z + b, which takes the place of Z."""
    import cupy

    Y = cupy.empty_like(Z)
    sizes = (numpy.int64(Z.size), _int(Z.shape[1]), _int(is_gelu))
    _start("activate", _of_size(Z.size), Y, Z, b, *sizes)
    return Y


def backprop_activate(dY: Any, Z: Any, db: Any, is_gelu: bool) -> Any:
    """The gradient of Z; that of b is added to ``db``."""
    import cupy

    (n, width), dZ = Z.shape, cupy.empty_like(Z)
    sums, n_blocks, n_chunks = _column_sums(n, width)
    sizes = (_int(n), _int(width), _int(n_chunks), _int(is_gelu))
    _start("backprop_activate", n_blocks, dZ, db, *sums, dY, Z, *sizes)
    return dZ


def rotation_tables(n_places: int, half: int, base: float) -> Tuple[Any, Any]:
    """Cosine and sine of place / base ** (i / half), each of shape (n_places, half)."""
    import cupy

    cosines, sines = (cupy.empty((n_places, half), dtype="f") for _ in range(2))
    sizes = (_int(n_places), _int(half), float(base))
    _start("rotation_tables", _of_size(cosines.size), cosines, sines, *sizes)
    return cosines, sines


def rotate(X: Any, b: Any, turns: Any, half: int, direction: float = 1.0) -> None:
    """Add a bias and turn queries and keys, in place.

    X (Floats2d): Queries, keys and values side by side, shape (n_tokens, 3 * width), contiguous.
    b (Optional[Floats1d]): Shape (3 * width,).
    turns (Optional[Tuple]): Place of each token, int64, and tables of ``rotation_tables``.
    half (int): Of the width of a head; not read without turns.
    """
    n, width = X.shape[0], X.shape[1] // 3
    sizes = (_int(n), _int(width), _int(half), float(direction))
    _start("rotate", _of_size(X.size), X, b, *(turns or (None, None, None)), *sizes)


def backprop_rotate(dY: Any, db: Any, turns: Any, half: int) -> Any:
    """The gradient of X; that of b is added to ``db``."""
    import cupy

    (n, columns), dX = dY.shape, cupy.empty_like(dY)
    sums, n_blocks, n_chunks = _column_sums(n, columns)
    sizes = (_int(n), _int(columns // 3), _int(half), _int(n_chunks))
    turns = turns or (None, None, None)
    _start("backprop_rotate", n_blocks, dX, db, *sums, dY, *turns, *sizes)
    return dX


def attend(QKV: Any, bounds: Any, n_heads: int) -> Tuple[Any, Any]:
    """Attention of each token to all of its sequence; and logarithms of sums of weights.

    QKV (Floats2d): Queries, keys and values side by side, shape (n_tokens, 3 * width).
    bounds (Ints2d): Where each token's sequence begins and ends, shape (2, n_tokens).
    RETURNS (Tuple[Floats2d, Floats2d]): Shapes (n_tokens, width) and (n_heads, n_tokens).
    """
    import cupy

    n, width = QKV.shape[0], QKV.shape[1] // 3
    QKV = _floats(QKV)
    Y, logs = cupy.empty((n, width), dtype="f"), cupy.empty((n_heads, n), dtype="f")
    arguments = (Y, logs, QKV, bounds, _int(n), _int(n_heads))
    _start("attend", -(-n * n_heads // _THREADS), *arguments, head=width // n_heads)
    return Y, logs


def backprop_attend(dY: Any, Y: Any, logs: Any, QKV: Any, bounds: Any) -> Any:
    """The gradient of QKV; Y and logs as ``attend`` gave them."""
    import cupy

    (n, width), n_heads = Y.shape, logs.shape[0]
    QKV, dY, dQKV = _floats(QKV), _floats(dY), cupy.empty(QKV.shape, dtype="f")
    arguments = (dQKV, dY, Y, logs, QKV, bounds, _int(n), _int(n_heads))
    _start("backprop_attend", -(-2 * n * n_heads // _THREADS), *arguments, head=width // n_heads)
    return dQKV


def add_product(to: Any, X: Any, Y: Any) -> None:
    """Add Xᵀ Y to a contiguous array, in place."""
    from cupy import cublas

    cublas.gemm("T", "N", _floats(X), _floats(Y), out=to, beta=1.0)
