"""Starts the kernels of ``kernels.cu`` and ``attention.cu``. All arrays are CuPy's, float32 or
int32, contiguous."""

import math
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, NamedTuple, Sequence, Tuple

import numpy

# Threads in a block; the same where a block adds up columns of many rows; blocks where a kernel
# has no number of its own.
_THREADS, _MANY_THREADS, _BLOCKS = 128, 1024, 256
# Blocks of kernels that add up all cells: one place each in the sums.
_N_SUMS = 64
# Columns that a block adds up at once.
_TILE = 32
_NO_ARRAY = numpy.int64(0)
# What layer normalisation adds to the variance.
_LEAST_VARIANCE = 1e-8
# By their numbers in the kernels.
_ACTIVATIONS = ("relu", "gelu", "swiglu")
# Numbers that are to be told, such as losses, for which memory is taken at once.
_N_TOLD = 1024


class Mask(NamedTuple):
    """Of dropout: never kept, as it can be drawn again.

    rate (float): At least 0 and below 1.
    seed, number (int): Masks of other numbers and seeds are independent.
    """

    rate: float
    seed: int = 0
    number: int = 0


NO_MASK = Mask(0.0)


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


@lru_cache(maxsize=None)
def _turns(device: int, stream: int) -> Any:
    """Where the blocks of a kernel count, to find the last one; 0 between kernels."""
    import cupy

    return cupy.zeros((1,), dtype="u4")


def _own_turns() -> Any:
    import cupy

    return _turns(cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream().ptr)


class _ToBeTold(threading.local):
    """Room for losses and norms, which stay on the device until somebody reads them. They lie side
    by side: each by itself would cut a large stretch of the pool's memory in two for that long."""

    def __init__(self) -> None:
        self._rooms: Dict[int, Tuple[Any, int]] = {}

    def two(self) -> Any:
        """Shape (2,), float32; not cleared."""
        import cupy

        device = cupy.cuda.runtime.getDevice()
        room, end = self._rooms.get(device, (None, _N_TOLD))
        if end == _N_TOLD:
            room, end = cupy.empty((_N_TOLD,), dtype="f"), 0
        self._rooms[device] = room, end + 2
        return room[end : end + 2]


_to_be_told = _ToBeTold()


def _start(
    name: str, n_blocks: int, *arguments: Any, threads: int = _THREADS, head: int = 0
) -> None:
    if n_blocks:  # Without rows there is nothing to do, and CUDA refuses no blocks.
        plain = (_NO_ARRAY if each is None else each for each in arguments)
        _kernel(name, head)((n_blocks,), (threads,), tuple(plain))


def _int(number: int) -> Any:
    return numpy.int32(number)


def _floats(array: Any) -> Any:
    import cupy

    return cupy.ascontiguousarray(array, dtype="f")


def _of_size(n: int) -> int:
    """Blocks for so many cells."""
    return min(_BLOCKS, -(-n // _THREADS))


def sum_rows(
    table: Any,
    ids: Any,
    starts: Any,
    *,
    factors: Any = None,
    weights: Any = None,
    rows: Any = None,
    into: Any = None,
) -> Any:
    """Of each group the sum of some rows of a table.

    table (Floats2d): Shape (n_rows, width).
    ids (Optional[Ints1d]): Rows of all groups, one after the other; None for all in their order.
    starts (Ints1d): Where each group begins in them, and the end of the last.
    factors (Optional[Floats1d]): Of each group's sum.
    weights (Optional[Floats1d]): Of each row of the table.
    rows (Optional[Ints1d]): Rows of ``into`` to add the sums to, all different.
    into (Optional[Floats2d]): Contiguous; new if None.
    RETURNS (Floats2d): Shape (n_groups, width), zeros for an empty group; or ``into``.
    """
    import cupy

    n, width = starts.shape[0] - 1, table.shape[1]
    out = cupy.empty((n, width), dtype="f") if into is None else into
    arguments = (out, _floats(table), ids, starts, factors, weights, rows, _int(n), _int(width))
    _start("sum_rows", n if width else 0, *arguments)
    return out


def max_rows(X: Any, starts: Any) -> Tuple[Any, Any]:
    """The highest cell of each column of each group, and its place; 0 for a group without rows."""
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


def backprop_windows(dY: Any, bounds: Any, size: int, dZ: Any = None) -> Any:
    """The gradient of the rows.

    dZ (Optional[Floats2d]): Is added to it.
    """
    import cupy

    n, width = dY.shape[0], dY.shape[1] // (2 * size + 1)
    dX = cupy.empty((n, width), dtype="f")
    dZ = None if dZ is None else _floats(dZ)
    _start("backprop_windows", n, dX, _floats(dY), dZ, bounds, _int(n), _int(width), _int(size))
    return dX


def backprop_maxout(dY: Any, which: Any, n_pieces: int) -> Any:
    """The gradient of the pieces, shape (*dY.shape, n_pieces)."""
    import cupy

    dX = cupy.empty((*dY.shape, n_pieces), dtype="f")
    sizes = (numpy.int64(dY.size), _int(n_pieces))
    _start("backprop_maxout", _of_size(dX.size), dX, _floats(dY), which, *sizes)
    return dX


def add_bias(Y: Any, b: Any, *, is_cut: bool = False) -> Any:
    """Y + b in the place of Y.

    is_cut (bool): Whether what is below 0 becomes 0.
    """
    sizes = (numpy.int64(Y.size), _int(Y.shape[1]), _int(is_cut))
    _start("add_bias", _of_size(Y.size), Y, b, *sizes)
    return Y


def backprop_bias(dY: Any, db: Any, Y: Any = None) -> Any:
    """The gradient of what the bias was added to; the bias' own is added to ``db``.

    Y (Optional[Floats2d]): Of ``add_bias``, if it was cut.
    """
    import cupy

    n, width = dY.shape
    dY = _floats(dY)
    dZ = dY if Y is None else cupy.empty_like(dY)
    n_blocks = -(-width // _TILE) if n else 0
    arguments = (db, dZ, dY, Y, _int(n), _int(width))
    _start("backprop_bias", n_blocks, *arguments, threads=_MANY_THREADS)
    return dZ


def scale(X: Any, s: Any, highest: float) -> Any:
    """X times exp(s), which is at most ``highest``."""
    import cupy

    Y = cupy.empty(X.shape, dtype="f")
    _start("scale", _of_size(X.size), Y, _floats(X), s, numpy.int64(X.size), float(highest))
    return Y


def backprop_scale(dY: Any, X: Any, s: Any, highest: float, ds: Any) -> Any:
    """The gradient of X; that of s is added to ``ds``."""
    import cupy

    dX, sums = cupy.empty(X.shape, dtype="f"), cupy.empty((_N_SUMS,), dtype="f")
    arguments = (dX, ds, sums, _own_turns(), _floats(dY), _floats(X), s)
    _start("backprop_scale", _N_SUMS, *arguments, numpy.int64(X.size), float(highest))
    return dX


def judge(Z: Any, targets: Any, losses: Any) -> Tuple[Any, Any]:
    """The place of the highest cell of each row; and, shape (2,), of how many rows it is the
    target, and the sum of the losses."""
    import cupy

    n, width = Z.shape
    best, found = cupy.empty((n,), dtype="i"), _sums_of(n)
    targets, losses = cupy.ascontiguousarray(targets, dtype="i"), _floats(losses)
    arguments = (best, found, _own_turns(), _floats(Z), targets, losses, _int(n), _int(width))
    _start("judge", n, *arguments)
    return best, found


def add_rows(A: Any, a: Any, B: Any, b: Any) -> Any:
    """Rows of A plus rows of B, by their numbers."""
    import cupy

    Y = cupy.empty((a.shape[0], A.shape[1]), dtype="f")
    _start("add_rows", a.shape[0], Y, _floats(A), a, _floats(B), b, *map(_int, Y.shape))
    return Y


def sum_products(
    A: Any, a: Any, B: Any, b: Any, starts: Any, base: Any = None, base_rows: Any = None
) -> Any:
    """Of each group the sum of products of rows of A and B, by their numbers.

    starts (Ints1d): Where each group begins in these, and the end of the last.
    base (Optional[Floats2d]): Rows of it, one for each group, are added.
    RETURNS (Floats2d): Shape (n_groups, width).
    """
    import cupy

    out = cupy.empty((starts.shape[0] - 1, A.shape[1]), dtype="f")
    given = (base, base_rows, _floats(A), a, _floats(B), b, starts)
    _start("sum_products", out.shape[0], out, *given, *map(_int, out.shape))
    return out


def memory_hops(X: Any, starts: Any, n_hops: int) -> Tuple[Any, Any, Any]:
    """All readings of memories; see ``MemoryHops``.

    X (Floats2d): Shape (n_rows, (n_hops + 1) * width).
    starts (Ints1d): Where each example's rows begin, of which the last is its question, and the
        end of the last.
    RETURNS (Tuple[Floats2d, Floats3d, Floats2d]): What is known in the end, shape (n_examples,
        width); what was known before each hop, shape (n_examples, n_hops, width); the share of
        each row in each hop.
    """
    import cupy

    n, width = starts.shape[0] - 1, X.shape[1] // (n_hops + 1)
    Y, U = cupy.empty((n, width), dtype="f"), cupy.empty((n, n_hops, width), dtype="f")
    P = cupy.empty((X.shape[0], n_hops), dtype="f")
    _start("memory_hops", n, Y, U, P, _floats(X), starts, _int(n), _int(width), _int(n_hops))
    return Y, U, P


def backprop_memory_hops(dY: Any, X: Any, U: Any, P: Any, starts: Any) -> Any:
    """The gradient of X; U and P as ``memory_hops`` gave them."""
    import cupy

    n, n_hops, width = U.shape
    dX, dl = cupy.empty_like(X), cupy.empty((X.shape[0],), dtype="f")
    du, dY = cupy.empty((n, width), dtype="f"), _floats(dY)
    sizes = (_int(n), _int(width), _int(n_hops))
    _start("backprop_memory_hops", n, dX, du, dl, dY, _floats(X), U, P, starts, *sizes)
    return dX


def lstm(G: Any, U: Any, b: Any, order: Any, starts: Any) -> Tuple[Any, Any]:
    """Both directions of an LSTM over sequences: all steps in one kernel.

    G (Floats2d): W x of both, shape (n_rows, 8 nH); becomes the gates.
    U (Floats3d): Shape (2, 4 nH, nH).
    b (Floats2d): Shape (2, 4 nH).
    order (Ints1d): The sequences, those first that take longest.
    starts (Ints1d): Where each begins, and the end of the last.
    RETURNS (Tuple[Floats3d, Floats3d]): Cells and outputs, shape (n_rows, 2, nH).
    """
    import cupy

    n, nH = order.shape[0], U.shape[2]
    C, H = (cupy.empty((G.shape[0], 2, nH), dtype="f") for _ in range(2))
    Ut = cupy.ascontiguousarray(U.transpose(0, 2, 1))
    arguments = (G, C, H, Ut, b, order, starts, _int(n), _int(nH))
    _start("lstm", 2 * n, *arguments, threads=_of_gates(nH))
    return C, H


def backprop_lstm(
    dY: Any, X: Any, run: Tuple[Any, Any, Any], U: Any, order: Any, starts: Any
) -> Tuple[Any, Any]:
    """Back through all steps of ``lstm``.

    dY (Floats2d): Gradient of the outputs, shape (n_rows, 2 nH).
    X (Floats2d): The input, shape (n_rows, nI).
    run (Tuple): Gates, cells and outputs.
    RETURNS (Tuple[Floats2d, Floats2d]): Gradient of W x, shape (n_rows, 8 nH), and all that the
        weights were multiplied with; see ``add_lstm_gradients``.
    """
    import cupy

    n, nH, nI = order.shape[0], U.shape[2], X.shape[1]
    dG = cupy.empty((X.shape[0], 8 * nH), dtype="f")
    Z = cupy.empty((X.shape[0], nI + 2 * nH + 4), dtype="f")
    carried = cupy.empty((n, 2, 5 * nH), dtype="f")
    given = (dG, Z, carried, _floats(dY), _floats(X), *run, U, order, starts)
    sizes = (_int(n), _int(nH), _int(nI))
    _start("backprop_lstm", 2 * n, *given, *sizes, threads=_of_gates(nH))
    return dG, Z


def add_lstm_gradients(product: Any, dW: Any, dU: Any, db: Any) -> None:
    """Add to the gradients of an LSTM's weights.

    product (Floats2d): Of what ``backprop_lstm`` gave, shape (8 nH, nI + 2 nH + 4).
    """
    arguments = (dW, dU, db, _floats(product), _int(dU.shape[2]), _int(dW.shape[2]))
    _start("add_lstm_gradients", product.shape[0], *arguments)


def _of_gates(nH: int) -> int:
    """Threads for a cell of each gate."""
    return min(1024, -(-4 * nH // 32) * 32)


def bounds(stretches: Sequence[Tuple[int, int]]) -> Any:
    """Where stretches of an array begin and end, on the device, to which they are copied once;
    int64, shape (n_stretches, 2)."""
    import cupy

    return _bounds(cupy.cuda.runtime.getDevice(), tuple(stretches))


@lru_cache(maxsize=64)
def _bounds(device: int, stretches: Tuple[Tuple[int, int], ...]) -> Any:
    import cupy

    return cupy.asarray(numpy.array(stretches, dtype="i8").reshape(-1, 2))


def found_factor(
    gradients: Any,
    bounds: Any,
    tables: Sequence[Any],
    scale: float,
    limit: float,
    n_skipped: Any = None,
) -> Any:
    """Of a whole gradient: its norm once it is scaled; and what it is to be multiplied by to be
    scaled and clipped, 0 if it is not finite. Shape (2,).

    gradients (Floats1d): Most of it.
    bounds (Ints2d): Stretches of ``gradients`` that count, int64, shape (n_stretches, 2).
    tables (Sequence[Floats2d]): And the rest.
    limit (float): Of the norm; 0 for none.
    n_skipped (Optional[Ints1d]): Raised by 1 if it is not finite; int32, shape (1,).
    """
    import cupy

    found, n = _to_be_told.two(), max(1, len(tables))
    sums = cupy.empty((n, _N_SUMS), dtype="f")
    for number in range(n):
        table, n_stretches = None, 0 if number else bounds.shape[0]
        if number < len(tables):
            table = _floats(tables[number])
        told = (found, n_skipped) if number == n - 1 else (None, None)
        given = (sums[number], *told, _own_turns(), gradients, bounds)
        size = numpy.int64(0 if table is None else table.size)
        more = (sums, _int(sums.size), float(scale), float(limit))
        _start("square_sums", _N_SUMS, *given, _int(n_stretches), table, size, *more)
    return found


def adam(
    arrays: Sequence[Any],
    found: Any,
    bounds: Any,
    tables: Sequence[Tuple[int, Any, Any]],
    settings: Tuple[float, ...],
) -> None:
    """A step of Adam, in place.

    arrays (Sequence[Floats1d]): Weights, their gradients, which become 0, and both moments.
    found (Floats1d): Of ``found_factor``.
    bounds (Ints2d): Stretches of them, int64, shape (n_stretches, 2).
    tables (Sequence[Tuple]): Where a table begins in them, the rows that have a gradient (int32),
        and that gradient.
    settings (Tuple[float, ...]): See the kernel.
    """
    for number in range(max(1, len(tables))):
        start, rows, d_rows, shape = 0, None, None, (0, 1)
        if number < len(tables):
            start, rows, d_rows = tables[number]
            shape = d_rows.shape
        dense = (bounds, _int(0 if number else bounds.shape[0]))
        table = (numpy.int64(start), rows, d_rows, numpy.int64(shape[0]), _int(shape[1]))
        _start("adam", _BLOCKS, *arrays, found, *dense, *table, *map(float, settings))


def stretch_squares(X: Any, bounds: Any) -> Any:
    """The sum of the squares of each stretch of an array, float64, shape (n_stretches,): of the
    same bits wherever in an array it lies.

    bounds (Ints2d): Where each begins and ends, int64, shape (n_stretches, 2).
    """
    import cupy

    sums = cupy.empty((bounds.shape[0],), dtype="d")
    _start("stretch_squares", bounds.shape[0], sums, X, bounds)
    return sums


def move_average(average: Any, values: Any, share: float) -> None:
    """average += share (values - average); float32, shape (n,)."""
    _start("move_average", _of_size(values.size), average, values, numpy.int64(values.size), share)


def times_found(X: Any, found: Any) -> None:
    """Multiply by the factor of ``found_factor``, in place; not finite becomes 0, too."""
    _start("times_found", _of_size(X.size), X, found, numpy.int64(X.size))


def softmax_loss(
    Z: Any,
    targets: Any,
    allowed: Any = None,
    weights: Any = None,
    smoothing: float = 0.0,
    *,
    is_used_up: bool = False,
) -> Tuple[Any, Any, Any, Any]:
    """Softmax cross-entropy: the gradient and the loss of each row; and what ``judge`` finds.

    is_used_up (bool): Whether the gradient may take the place of Z.
    """
    Z, results, given = _of_loss(Z, targets, allowed, is_used_up)
    n, width = Z.shape
    weights = None if weights is None else _floats(weights)
    sizes = (_int(n), _int(width), float(smoothing))
    _start("softmax_loss", n, *results, _own_turns(), Z, *given, weights, *sizes)
    return results


def hinge_loss(
    Z: Any,
    targets: Any,
    allowed: Any,
    margin: float,
    is_hardest: bool,
    *,
    is_used_up: bool = False,
) -> Tuple[Any, Any, Any, Any]:
    """See ``RankingHinge``; results and ``is_used_up`` as of ``softmax_loss``."""
    Z, results, given = _of_loss(Z, targets, allowed, is_used_up)
    n, width = Z.shape
    sizes = (_int(n), _int(width), _int(is_hardest), float(margin))
    _start("hinge_loss", n, *results, _own_turns(), Z, *given, *sizes)
    return results


def _of_loss(
    Z: Any, targets: Any, allowed: Any, is_used_up: bool
) -> Tuple[Any, Tuple[Any, Any, Any, Any], Tuple[Any, Any]]:
    """The scores, room for results, and the other arrays, as kernels of losses take them."""
    import cupy

    n, Z = Z.shape[0], _floats(Z)
    gradient = Z if is_used_up else cupy.empty(Z.shape, dtype="f")
    losses, best = cupy.empty((n,), dtype="f"), cupy.empty((n,), dtype="i")
    found = _sums_of(n)
    targets = cupy.ascontiguousarray(targets, dtype="i")
    allowed = None if allowed is None else cupy.ascontiguousarray(allowed, dtype="?")
    return Z, (gradient, losses, best, found), (targets, allowed)


def _sums_of(n: int) -> Any:
    """Room for two sums over n rows, which no kernel writes if there are none."""
    found = _to_be_told.two()
    if not n:
        found.fill(0)
    return found


def best_cells(
    X: Any, starts: Any, n_best: int, behind: Any, right: Any
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """See ``DialogCupyOps``.

    starts (Ints1d): Where each row begins, and the end of the last, int64.
    right (Ints1d): int64.
    """
    import cupy

    n = right.shape[0]
    found = cupy.empty((n * (2 * n_best + 5),), dtype="i")
    places, numbers = found[: n * n_best], found[n * n_best :].view("f")
    given = (places, numbers, _floats(X), starts, behind, right, _int(n), _int(n_best))
    _start("best_cells", n, *given)
    host: Any = found.get()
    return host[: n * n_best].reshape(n, n_best), host[n * n_best :].view("f").reshape(n, -1)


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


def layer_norm(X: Any, G: Any, b: Any) -> Tuple[Any, Any, Any]:
    """See ``DialogFastOps``."""
    import cupy

    (n, width), X = X.shape, _floats(X)
    Y, hat, scales = cupy.empty_like(X), cupy.empty_like(X), cupy.empty((n,), dtype="f")
    sizes = (_int(n), _int(width), _LEAST_VARIANCE)
    _start("layer_norm", n, Y, hat, scales, X, _floats(G), _floats(b), *sizes)
    return Y, hat, scales


def backprop_layer_norm(
    dY: Any, G: Any, hat: Any, scales: Any, dG: Any = None, db: Any = None
) -> Tuple[Any, Any, Any]:
    """See ``DialogFastOps``.

    dG, db (Optional[Floats1d]): What belongs to the gradients of G and b is added there.
    """
    import cupy

    dG, db = (cupy.zeros_like(G) if each is None else each for each in (dG, db))
    return _backprop_normal(_floats(dY), (G, hat, scales), (dG, db), None, NO_MASK)[0], dG, db


def _add_gains(dY: Any, hat: Any, gradients: Tuple[Any, Any, Any], dX: Any = None) -> None:
    """Add to the gradients of a normalisation's G and b, and to that of a bias (if it is not
    None) that was added before and whose sums are those of dX."""
    (n, width), (dG, db, d_bias) = hat.shape, gradients
    of_bias = 0 if d_bias is None else math.prod(d_bias.shape)
    n_blocks = -(-width // _TILE) - (-of_bias // _TILE)
    arguments = (dG, db, d_bias, dY, hat, dX, _int(n), _int(width), _int(of_bias))
    _start("backprop_gain", n_blocks, *arguments, threads=_MANY_THREADS)


def _place_of(mask: Mask) -> Tuple[Any, ...]:
    return numpy.uint64(mask.seed), numpy.uint64(mask.number), float(mask.rate)


def add_norm(
    X: Any, bias: Any, skip: Any, weights: Tuple[Any, Any], mask: Mask
) -> Tuple[Any, Any, Any]:
    """``layer_norm`` of skip + mask * (X + bias), with the weights G and b."""
    import cupy

    (n, width), X = X.shape, _floats(X)
    Y, hat, scales = cupy.empty_like(X), cupy.empty_like(X), cupy.empty((n,), dtype="f")
    given = (Y, hat, scales, None, X, _floats(skip), bias, *weights)
    sizes = (_int(n), _int(width), _LEAST_VARIANCE)
    _start("add_norm", n, *given, *sizes, *_place_of(mask))
    return Y, hat, scales


def backprop_add_norm(
    dY: Any, G: Any, hat: Any, scales: Any, mask: Mask, gradients: Tuple[Any, Any, Any]
) -> Tuple[Any, Any]:
    """The gradients of ``skip`` and of X; those of G, b and bias are added to ``gradients``."""

    dY = _floats(dY)
    d_skip, dX = _backprop_normal(dY, (G, hat, scales), None, None, mask)
    _add_gains(dY, hat, gradients, dX)
    return d_skip, dX


def maxout_norm(
    X: Any, bias: Any, skip: Any, weights: Tuple[Any, Any], mask: Mask
) -> Tuple[Any, Tuple[Any, Any, Any]]:
    """skip + mask * ``layer_norm`` of ``maxout``, with the weights G and b.

    RETURNS (Tuple[Floats2d, Tuple]): The rows, and what ``backprop_maxout_norm`` needs.
    """
    import cupy

    n, width, n_pieces = X.shape
    Y, hat, which = (cupy.empty((n, width), dtype=kind) for kind in "ffi")
    scales = cupy.empty((n,), dtype="f")
    given = (Y, hat, scales, which, _floats(X), _floats(skip), bias, *weights)
    sizes = (_int(n), _int(width), _int(n_pieces), _LEAST_VARIANCE)
    _start("maxout_norm", n, *given, *sizes, *_place_of(mask))
    return Y, (hat, scales, which)


def backprop_maxout_norm(
    dY: Any,
    bias: Any,
    G: Any,
    run: Tuple[Any, Any, Any],
    mask: Mask,
    gradients: Tuple[Any, Any, Any],
) -> Any:
    """The gradient of the pieces, shape (n, width, n_pieces); those of G, b and bias are added to
    ``gradients``."""
    import cupy

    (hat, scales, which), (n, width), dY = run, dY.shape, _floats(dY)
    dX, dN = cupy.empty((n, *bias.shape), dtype="f"), cupy.empty_like(hat)
    sizes = (_int(n), _int(width), _int(bias.shape[1]))
    given = (dX, dN, dY, G, hat, scales, which)
    _start("backprop_maxout_norm", n, *given, *sizes, *_place_of(mask))
    _add_gains(dN, hat, gradients, dX)
    return dX


def dropout_mask(shape: Any, mask: Mask) -> Any:
    """Factors: 0 with the probability of the rate, else 1 / (1 - rate)."""
    import cupy

    return _dropout(cupy.empty(shape, dtype="f"), None, mask)


def dropout(X: Any, mask: Mask) -> Any:
    """X times a ``dropout_mask``."""
    import cupy

    return _dropout(cupy.empty(X.shape, dtype="f"), _floats(X), mask)


def _dropout(Y: Any, X: Any, mask: Mask) -> Any:
    n_blocks = _of_size(-(-Y.size // 4))
    _start("dropout", n_blocks, Y, X, numpy.int64(Y.size), *_place_of(mask))
    return Y


# --- transformers ---------------------------------------------------------------------

# Columns that have a counter; rows of a block that sums columns, at least, and most blocks.
_GROUP, _MOST_GROUPS, _CHUNK_ROWS, _MOST_CHUNKS = 32, 4096, 16, 64


@lru_cache(maxsize=None)
def _counters(device: int, stream: int) -> Any:
    """As ``_turns``, for blocks that sum columns."""
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
    counters = _counters(cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream().ptr)
    return (parts, counters), n_chunks * n_groups, n_chunks


def add_dropped(X: Any, bias: Any, skip: Any, mask: Mask) -> Any:
    """skip + mask * (X + bias)."""
    import cupy

    n, width = X.shape
    total = cupy.empty_like(X)
    given = (None, None, None, total, X, skip, bias, None, None)
    _start("add_norm", n, *given, _int(n), _int(width), 0.0, *_place_of(mask))
    return total


def add_dropped_and_norm(
    X: Any, bias: Any, skip: Any, weights: Tuple[Any, Any], mask: Mask
) -> Tuple[Any, Any, Any, Any]:
    """``add_dropped``, and ``add_norm``."""
    import cupy

    n, width = X.shape
    total, Y, hat = (cupy.empty_like(X) for _ in range(3))
    scales = cupy.empty((n,), dtype="f")
    given = (Y, hat, scales, total, X, skip, bias, *weights)
    sizes = (_int(n), _int(width), _LEAST_VARIANCE)
    _start("add_norm", n, *given, *sizes, *_place_of(mask))
    return total, Y, hat, scales


def backprop_add_dropped_and_norm(
    dY: Any, d_sum: Any, normal: Tuple[Any, Any, Any], d_normal: Tuple[Any, Any], mask: Mask
) -> Tuple[Any, Any]:
    """Back through ``add_dropped_and_norm``; the gradient of the bias is left.

    dY, d_sum (Floats2d): Gradients of the normal rows and of what they were made of.
    normal (Tuple): G, hat and scales.
    d_normal (Tuple): Where the gradients of G and b are gathered.
    RETURNS (Tuple[Floats2d, Floats2d]): The gradients of ``skip`` and of X.
    """
    return _backprop_normal(dY, normal, d_normal, d_sum, mask)


def _backprop_normal(
    dY: Any, normal: Tuple[Any, Any, Any], d_normal: Any, more: Any, mask: Mask
) -> Tuple[Any, Any]:
    import cupy

    (G, hat, scales), n_blocks, n_chunks = normal, 0, 0
    n, width = hat.shape
    dX = cupy.empty_like(hat)
    d_dropped = cupy.empty_like(hat) if mask.rate else None
    gathered: Any = (None, None, None, None)
    if d_normal is not None:
        sums, n_blocks, n_chunks = _column_sums(n, 2 * width)
        gathered = (*d_normal, *sums)
    arguments = (dX, d_dropped, *gathered, dY, G, hat, scales, more)
    sizes = (_int(n), _int(width), _int(n), _int(n_chunks))
    _start("backprop_layer_norm", n + n_blocks, *arguments, *sizes, *_place_of(mask))
    return dX, dX if d_dropped is None else d_dropped


def activate(Z: Any, b: Any, activation: str) -> Any:
    """What an activation makes of Z + b, which takes the place of Z.

    activation (str): "relu", "gelu" or "swiglu", which makes half as many columns.
    """
    import cupy

    n, width = Z.shape
    Y = cupy.empty((n, width // 2 if activation == "swiglu" else width), dtype="f")
    sizes = (numpy.int64(Y.size), _int(Y.shape[1]), _int(_ACTIVATIONS.index(activation)))
    _start("activate", _of_size(Y.size), Y, Z, b, *sizes)
    return Y


def backprop_activate(
    dY: Any, Z: Any, db: Any, activation: str, columns: Tuple[Any, Any] = (None, None)
) -> Any:
    """The gradient of Z; that of b is added to ``db``.

    columns (Tuple[Floats2d, Floats1d]): Another array of as many rows, whose sums of columns are
        added to the second: the gradient of another bias.
    """
    import cupy

    (n, width), dZ, (X, dx) = Z.shape, cupy.empty_like(Z), columns
    n_more = 0 if X is None else X.shape[1]
    sums, n_blocks, n_chunks = _column_sums(n, width + n_more)
    kind = _ACTIVATIONS.index(activation)
    sizes = (_int(n), _int(width), _int(n_more), _int(n_chunks), _int(kind))
    _start("backprop_activate", n_blocks, dZ, db, dx, *sums, _floats(dY), Z, X, *sizes)
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


def backprop_rotate(dY: Any, db: Any, turns: Any, half: int, columns: Tuple[Any, Any]) -> Any:
    """The gradient of X; that of b is added to ``db``.

    columns (Tuple[Floats2d, Floats1d]): As for ``backprop_activate``; shape (n_tokens, width).
    """
    import cupy

    (n, n_cells), dX, (Z, dz) = dY.shape, cupy.empty_like(dY), columns
    sums, n_blocks, n_chunks = _column_sums(n, n_cells // 3 * 4)
    sizes = (_int(n), _int(n_cells // 3), _int(half), _int(n_chunks))
    turns = turns or (None, None, None)
    _start("backprop_rotate", n_blocks, dX, db, dz, *sums, dY, Z, *turns, *sizes)
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


def attend_with(S: Any, X: Any, starts: Any) -> Tuple[Any, Any]:
    """What queries find in each sequence.

    S (Floats2d): Products of tokens and queries, shape (n_tokens, n_queries).
    X (Floats2d): Tokens, shape (n_tokens, width).
    starts (Ints1d): Where each sequence begins, and the end of the last.
    RETURNS (Tuple[Floats3d, Floats2d]): Shape (n_sequences, n_queries, width), and the weights,
        shaped like S.
    """
    import cupy

    n, n_queries, width = starts.shape[0] - 1, S.shape[1], X.shape[1]
    Y, P = cupy.empty((n, n_queries, width), dtype="f"), cupy.empty(S.shape, dtype="f")
    arguments = (Y, P, _floats(S), X, starts, _int(n), _int(n_queries), _int(width))
    _start("attend_with", n * n_queries, *arguments)
    return Y, P


def backprop_attend_with(
    dY: Any, P: Any, queries: Any, X: Any, starts: Any, owners: Any
) -> Tuple[Any, Any]:
    """The gradients of S, and of X as a whole.

    owners (Ints1d): The sequence of each token.
    """
    import cupy

    n, n_queries, width = dY.shape
    dS, dX, dY = cupy.empty_like(P), cupy.empty_like(X), _floats(dY)
    sizes = (_int(n), _int(n_queries), _int(width))
    _start("backprop_scores", n * n_queries, dS, dY, P, X, starts, *sizes)
    arguments = (dX, dY, P, dS, _floats(queries), owners, _int(X.shape[0]))
    _start("backprop_attend_with", X.shape[0], *arguments, *sizes[1:])
    return dS, dX
