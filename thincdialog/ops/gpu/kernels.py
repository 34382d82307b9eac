"""Functions that launch the kernels of ``kernels.cu`` and ``attention.cu``. All arrays are CuPy's,
float32 or int32, and contiguous unless stated otherwise."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Sequence, Tuple

import numpy
from thinc.compat import cupy

# Threads in a block; largest number of blocks unless a kernel defines its own.
_THREADS, _BLOCKS = 128, 256
# Number of blocks in kernels that sum all cells; each block writes one partial sum.
_N_SUMS = 64
_NO_ARRAY = numpy.int64(0)


@lru_cache(maxsize=None)
def source(file: str = "kernels") -> str:
    """Return the source of kernels in CUDA C++.

    file (str): "kernels", or "attention" for kernels that are compiled for one width of heads.
    """
    return (Path(__file__).parent / f"{file}.cu").read_text(encoding="utf8")


@lru_cache(maxsize=None)
def _kernel(name: str, head: int) -> Any:
    if head:
        return cupy.RawKernel(source("attention"), name, options=(f"-DHEAD={head}",))
    return cupy.RawKernel(source(), name)


@lru_cache(maxsize=None)
def _block_counter(device: int, stream: int) -> Any:
    """Return a counter of the finished blocks of a kernel, with which the kernel finds its last
    block. The counter is 0 between kernels."""
    return cupy.zeros((1,), dtype="u4")


def _own_counter() -> Any:
    return _block_counter(cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream().ptr)


def _launch(
    name: str, n_blocks: int, *arguments: Any, threads: int = _THREADS, head: int = 0
) -> None:
    if n_blocks:  # Without rows there is nothing to do, and CUDA raises an error for 0 blocks.
        plain = (_NO_ARRAY if each is None else each for each in arguments)
        _kernel(name, head)((n_blocks,), (threads,), tuple(plain))


def _int(number: int) -> Any:
    return numpy.int32(number)


def _contiguous(array: Any, dtype: str) -> Any:
    return cupy.ascontiguousarray(array, dtype=dtype)


def _floats(array: Any) -> Any:
    return _contiguous(array, "f")


def _empty(shape: Any, dtype: str = "f") -> Any:
    return cupy.empty(shape, dtype=dtype)


def _n_blocks(n: int) -> int:
    """Return the number of blocks for a number of cells."""
    return min(_BLOCKS, -(-n // _THREADS))


def sum_rows(table: Any, ids: Any, starts: Any, factors: Any = None) -> Any:
    """Return the sum of some rows of a table for each group.

    table (Floats2d): Shape (n_rows, width).
    ids (Optional[Ints1d]): Rows of all groups, one group after another; None for all rows in their
        order.
    starts (Ints1d): Index of each group's first id, and the end of the last group.
    factors (Optional[Floats1d]): Factor of each group's sum.
    RETURNS (Floats2d): Shape (n_groups, width), zeros for an empty group.
    """
    n, width = starts.shape[0] - 1, table.shape[1]
    out = _empty((n, width))
    arguments = (out, _floats(table), ids, starts, factors, _int(n), _int(width))
    _launch("sum_rows", n if width else 0, *arguments)
    return out


def max_rows(X: Any, starts: Any) -> Tuple[Any, Any]:
    """Return the maximum of each column of each group, and its row in the group; 0 for an empty
    group."""
    n, width = starts.shape[0] - 1, X.shape[1]
    highest, which = _empty((n, width)), _empty((n, width), "i")
    _launch("max_rows", n, highest, which, _floats(X), starts, _int(n), _int(width))
    return highest, which


def backprop_max_rows(d_highest: Any, which: Any, starts: Any, n_rows: int) -> Any:
    """Return the gradient of the rows."""
    n, width = which.shape
    dX = _empty((n_rows, width))
    arguments = (dX, _floats(d_highest), which, starts, _int(n), _int(width))
    _launch("backprop_max_rows", n, *arguments)
    return dX


def windows(X: Any, bounds: Any, size: int) -> Any:
    """Return each row joined with its neighbours, ``size`` on each side.

    bounds (Ints2d): Begin and end of each row's sequence, shape (2, n_rows).
    """
    n, width = X.shape
    out = _empty((n, width * (2 * size + 1)))
    _launch("windows", n, out, _floats(X), bounds, _int(n), _int(width), _int(size))
    return out


def backprop_windows(dY: Any, bounds: Any, size: int) -> Any:
    """Return the gradient of the rows."""
    n, width = dY.shape[0], dY.shape[1] // (2 * size + 1)
    dX = _empty((n, width))
    _launch("backprop_windows", n, dX, _floats(dY), bounds, _int(n), _int(width), _int(size))
    return dX


def lstm(G: Any, U: Any, b: Any, order: Any, starts: Any) -> Tuple[Any, Any]:
    """Run both directions of an LSTM over sequences, all steps in one kernel.

    G (Floats2d): W x of both directions, shape (n_rows, 8 nH); overwritten with the gates.
    U (Floats3d): Shape (2, 4 nH, nH).
    b (Floats2d): Shape (2, 4 nH).
    order (Ints1d): The sequences, longest first.
    starts (Ints1d): Index of the first row of each sequence, and the end of the last.
    RETURNS (Tuple[Floats3d, Floats3d]): Cells and outputs, shape (n_rows, 2, nH).
    """
    n, nH = order.shape[0], U.shape[2]
    C, H = (_empty((G.shape[0], 2, nH)) for _ in range(2))
    Ut = _floats(U.transpose(0, 2, 1))
    arguments = (G, C, H, Ut, b, order, starts, _int(n), _int(nH))
    _launch("lstm", 2 * n, *arguments, threads=_n_threads(nH))
    return C, H


def backprop_lstm(
    dY: Any, X: Any, run: Tuple[Any, Any, Any], U: Any, order: Any, starts: Any
) -> Tuple[Any, Any]:
    """Compute the gradient through all steps of ``lstm``.

    dY (Floats2d): Gradient of the outputs, shape (n_rows, 2 nH).
    X (Floats2d): The input, shape (n_rows, nI).
    run (Tuple): Gates, cells and outputs.
    RETURNS (Tuple[Floats2d, Floats2d]): Gradient of W x, shape (n_rows, 8 nH), and the values that
        the weights were multiplied by: x, the outputs of the step before in both directions, and
        1 0 0 0; shape (n_rows, nI + 2 nH + 4).
    """
    n, nH, nI = order.shape[0], U.shape[2], X.shape[1]
    dG = _empty((X.shape[0], 8 * nH))
    Z = _empty((X.shape[0], nI + 2 * nH + 4))
    carried = _empty((n, 2, 5 * nH))
    given = (dG, Z, carried, _floats(dY), _floats(X), *run, U, order, starts)
    sizes = (_int(n), _int(nH), _int(nI))
    _launch("backprop_lstm", 2 * n, *given, *sizes, threads=_n_threads(nH))
    return dG, Z


def _n_threads(nH: int) -> int:
    """Return the number of threads for one cell of each gate."""
    return min(1024, -(-4 * nH // 32) * 32)


def bounds(ranges: Sequence[Tuple[int, int]]) -> Any:
    """Return the begin and end of ranges of an array, on the device, where they are cached; int64,
    shape (n_ranges, 2)."""
    return _bounds(cupy.cuda.runtime.getDevice(), tuple(ranges))


@lru_cache(maxsize=64)
def _bounds(device: int, ranges: Tuple[Tuple[int, int], ...]) -> Any:
    return cupy.asarray(numpy.array(ranges, dtype="i8").reshape(-1, 2))


def found_factor(
    gradients: Any,
    bounds: Any,
    tables: Sequence[Any],
    scale: float,
    limit: float,
    n_skipped: Any = None,
) -> Any:
    """Return the norm of a whole gradient after scaling, and the factor that scales and clips the
    gradient, which is 0 if the norm is not finite. Shape (2,).

    gradients (Floats1d): The dense part of the gradient.
    bounds (Ints2d): Ranges of ``gradients`` to include, int64, shape (n_ranges, 2).
    tables (Sequence[Floats2d]): The other part: gradients of table rows.
    limit (float): Largest norm; 0 for no limit.
    n_skipped (Optional[Ints1d]): Raised by 1 if the norm is not finite; int32, shape (1,).
    """
    found, n = _empty((2,)), max(1, len(tables))
    sums = _empty((n, _N_SUMS))
    for number in range(n):
        table, n_ranges = None, 0 if number else bounds.shape[0]
        if number < len(tables):
            table = _floats(tables[number])
        outputs = (found, n_skipped) if number == n - 1 else (None, None)
        given = (sums[number], *outputs, _own_counter(), gradients, bounds)
        size = numpy.int64(0 if table is None else table.size)
        more = (sums, _int(sums.size), float(scale), float(limit))
        _launch("square_sums", _N_SUMS, *given, _int(n_ranges), table, size, *more)
    return found


def adam(
    arrays: Sequence[Any],
    found: Any,
    bounds: Any,
    tables: Sequence[Tuple[int, Any, Any]],
    settings: Tuple[float, ...],
) -> None:
    """Take a step of Adam in place.

    arrays (Sequence[Floats1d]): Weights, their gradients, which become 0, and both moments.
    found (Floats1d): Result of ``found_factor``.
    bounds (Ints2d): Ranges of the arrays to update, int64, shape (n_ranges, 2).
    tables (Sequence[Tuple]): For each table the index of its first float in the arrays, the rows
        that have a gradient (int32), and that gradient.
    settings (Tuple[float, ...]): See the kernel.
    """
    for number in range(max(1, len(tables))):
        start, rows, d_rows, shape = 0, None, None, (0, 1)
        if number < len(tables):
            start, rows, d_rows = tables[number]
            shape = d_rows.shape
        dense = (bounds, _int(0 if number else bounds.shape[0]))
        table = (numpy.int64(start), rows, d_rows, numpy.int64(shape[0]), _int(shape[1]))
        _launch("adam", _BLOCKS, *arrays, found, *dense, *table, *map(float, settings))


def softmax_loss(
    Z: Any, targets: Any, allowed: Any = None, weights: Any = None, smoothing: float = 0.0
) -> Tuple[Any, Any]:
    """Compute the softmax cross-entropy: the gradient, and the loss of each row.

    Z (Floats2d): Scores, shape (n, width).
    targets (Ints1d): The right column of each row, shape (n,).
    allowed (Optional[Array2d]): Mask of the cells to include, bool, shape as Z.
    weights (Optional[Floats1d]): Weight of a row by its right column, shape (width,).
    smoothing (float): See ``ClassSoftmax``.
    """
    (n, width), Z = Z.shape, _floats(Z)
    gradient, losses = _empty((n, width)), _empty((n,))
    allowed = None if allowed is None else _contiguous(allowed, "?")
    weights = None if weights is None else _floats(weights)
    given = (Z, _contiguous(targets, "i"), allowed, weights)
    _launch("softmax_loss", n, gradient, losses, *given, _int(n), _int(width), float(smoothing))
    return gradient, losses


def layer_norm(X: Any, G: Any, b: Any, eps: float) -> Tuple[Any, Any, Any]:
    """Normalise rows; see ``ops.normalise``.

    RETURNS (Tuple[Floats2d, Floats2d, Floats1d]): The result, the rows before G and b are applied,
        and the scale of each row.
    """
    (n, width), X = X.shape, _floats(X)
    Y, hat, scales = _empty(X.shape), _empty(X.shape), _empty((n,))
    sizes = (_int(n), _int(width), eps)
    _launch("layer_norm", n, Y, hat, scales, X, _floats(G), _floats(b), *sizes)
    return Y, hat, scales


def backprop_layer_norm(dY: Any, G: Any, hat: Any, scales: Any) -> Any:
    """Return the gradient of X; hat and scales are those that ``layer_norm`` returned."""
    (n, width), dX = hat.shape, _empty(hat.shape)
    given = (dX, _floats(dY), _floats(G), hat, scales)
    _launch("backprop_layer_norm", n, *given, _int(n), _int(width))
    return dX


def dropout_mask(shape: Any, rate: float, seed: int, number: int) -> Any:
    """Return factors for dropout: 0 with probability ``rate``, else 1 / (1 - rate).

    seed, number (int): Masks with another seed or number are independent.
    """
    mask = _empty(shape)
    place = (numpy.uint64(seed), numpy.uint64(number), float(rate))
    _launch("dropout_mask", _n_blocks(-(-mask.size // 4)), mask, numpy.int64(mask.size), *place)
    return mask


def swiglu(Z: Any, b: Any) -> Any:
    """Apply SwiGLU; see ``ops.swiglu``."""
    Y = _empty((Z.shape[0], Z.shape[1] // 2))
    _launch("swiglu", _n_blocks(Y.size), Y, Z, _floats(b), numpy.int64(Y.size), _int(Y.shape[1]))
    return Y


def backprop_swiglu(dY: Any, Z: Any) -> Any:
    """Return the gradient of Z, which ``swiglu`` has overwritten."""
    dZ, dY = _empty(Z.shape), _floats(dY)
    sizes = (numpy.int64(dY.size), _int(dY.shape[1]))
    _launch("backprop_swiglu", _n_blocks(dY.size), dZ, dY, Z, *sizes)
    return dZ


def rotate(X: Any, places: Any, tables: Tuple[Any, Any], direction: float) -> None:
    """Rotate X in place; see ``ops.rotation``.

    places (Ints1d): Position of each token, shape (n_tokens,), int32.
    tables (Tuple[Floats2d, Floats2d]): Cosines and sines, shape (n_places, half) each.
    """
    n, width, half = X.shape[0], X.shape[1] // 3, tables[0].shape[1]
    sizes = (_int(n), _int(width), _int(half), float(direction))
    _launch("rotate", _n_blocks(n * width), X, places, *tables, *sizes)


def attend(Q: Any, K: Any, V: Any, of_queries: Any, n_heads: int, factor: float) -> Tuple[Any, Any]:
    """Compute attention, and the logarithms of the sums of its weights; see ``ops.attention``.

    Q, K, V (Floats2d): Shapes (n_queries, width) and (n_keys, width), contiguous.
    of_queries (Ints2d): Ranges of keys from ``Spans.bounds``.
    RETURNS (Tuple[Floats2d, Floats2d]): Shapes (n_queries, width) and (n_heads, n_queries).
    """
    n, width = Q.shape
    Y, logs = _empty((n, width)), _empty((n_heads, n))
    sizes = (_int(n), _int(n_heads), float(factor))
    n_blocks = -(-n * n_heads // _THREADS)
    _launch("attend", n_blocks, Y, logs, Q, K, V, of_queries, *sizes, head=width // n_heads)
    return Y, logs


def backprop_attend(
    dY: Any, run: Tuple[Any, ...], of_queries: Any, of_keys: Any, factor: float
) -> Tuple[Any, Any, Any]:
    """Return the gradients of Q, K and V.

    run (Tuple): Y and logs that ``attend`` returned, and its arguments Q, K and V.
    """
    _, logs, Q, K, _ = run
    (n, width), n_keys, n_heads = Q.shape, K.shape[0], logs.shape[0]
    dQ, dY = _empty((n, width)), _floats(dY)
    dK, dV = (_empty((n_keys, width)) for _ in range(2))
    given = (dY, *run)
    head, sizes = width // n_heads, (_int(n), _int(n_heads), float(factor))
    n_blocks = -(-n * n_heads // _THREADS)
    _launch("backprop_queries", n_blocks, dQ, *given, of_queries, *sizes, head=head)
    n_blocks = -(-n_keys * n_heads // _THREADS)
    own = (of_keys, _int(n_keys), *sizes)
    _launch("backprop_keys", n_blocks, dK, dV, *given, *own, head=head)
    return dQ, dK, dV
