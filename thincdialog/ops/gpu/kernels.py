"""Starts the kernels of ``kernels.cu``. All arrays are CuPy's, float32 or int32, contiguous."""

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
def source() -> str:
    """The kernels, in CUDA C++."""
    return (Path(__file__).parent / "kernels.cu").read_text(encoding="utf8")


@lru_cache(maxsize=None)
def _kernel(name: str) -> Any:
    import cupy

    return cupy.RawKernel(source(), name)


def _start(name: str, n_blocks: int, *arguments: Any) -> None:
    if n_blocks:  # Without rows there is nothing to do, and CUDA refuses no blocks.
        plain = (_NO_ARRAY if each is None else each for each in arguments)
        _kernel(name)((n_blocks,), (_THREADS,), tuple(plain))


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


def backprop_layer_norm(dY: Any, G: Any, hat: Any, scales: Any) -> Tuple[Any, Any, Any]:
    """See ``DialogFastOps``."""
    import cupy

    (n, width), dY = hat.shape, _floats(dY)
    dX, dG, db = cupy.empty_like(hat), cupy.empty_like(G), cupy.empty_like(G)
    sizes = (_int(n), _int(width))
    _start("backprop_layer_norm", n, dX, dY, _floats(G), hat, scales, *sizes)
    _start("backprop_gain", width, dG, db, dY, hat, *sizes)
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
