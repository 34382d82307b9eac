"""Functions that scale rows to length 1, or to mean 0 and variance 1."""

from typing import Any, Callable, Optional, Tuple

import numpy
from thinc.api import Ops
from thinc.types import Floats1d, Floats2d

from .compiled import load_kernels
from .dialog_cupy_ops import DialogCupyOps
from .dialog_fast_ops import DialogFastOps
from .gpu import kernels


def layer_norm(
    ops: Ops,
    X: Floats2d,
    G: Floats1d,
    b: Floats1d,
    eps: float = 1e-8,
    *,
    added: Optional[Floats2d] = None,
) -> Tuple[Floats2d, Callable[[Floats2d], Tuple[Floats2d, Floats1d, Floats1d]]]:
    """Normalise each row to mean 0 and variance 1, multiply by G and add b.

        Y = G (X - mean) / sqrt(variance + eps) + b        of each row

    X (Floats2d): Shape (n, width), float32.
    G, b (Floats1d): Shape (width,).
    eps (float): Added to the variance, so that it is never zero.
    added (Optional[Floats2d]): Added to X first; its gradient is that of X.
    RETURNS (Tuple[Floats2d, Callable]): Y, shape (n, width); and the function that maps the
        gradient of Y to those of X, G and b.
    SOURCE: Ba et al. 2016, https://arxiv.org/abs/1607.06450
    """
    if isinstance(ops, DialogFastOps):
        return _layer_norm_compiled(X, added, G, b, eps)
    X = X if added is None else X + added
    if isinstance(ops, DialogCupyOps):
        return _layer_norm_on_device(X, G, b, eps)
    xp: Any = ops.xp
    mean, variance = X.mean(axis=1, keepdims=True), X.var(axis=1, keepdims=True) + eps
    hat = (X - mean) * variance ** (-1.0 / 2.0)
    Y: Any = hat * G
    Y += b

    def backprop(dY: Floats2d) -> Tuple[Floats2d, Floats1d, Floats1d]:
        n: Any = ops.asarray_f([X.shape[1]])
        db, dG = dY.sum(axis=0), (dY * hat).sum(axis=0)
        d_scaled = dY * G
        apart = X - mean
        along = xp.sum(d_scaled * apart, axis=1, keepdims=True)
        total = xp.sum(d_scaled, axis=1, keepdims=True)
        dX = n * d_scaled - total - apart * variance ** (-1.0) * along
        dX *= variance ** (-1.0 / 2)
        dX /= n
        return dX, dG, db

    return Y, backprop


def _layer_norm_compiled(X: Any, added: Any, G: Any, b: Any, eps: float) -> Tuple[Any, Callable]:
    rows = load_kernels("rows")
    X, G = _plain(X), _plain(G)
    Y, hat, scales = numpy.empty_like(X), numpy.empty_like(X), numpy.empty(X.shape[:1], "f")
    Z = X[:0] if added is None else _plain(added)
    rows.layer_norm(X, Z, G, _plain(b), eps, Y, hat, scales)

    def backprop(dY: Any) -> Tuple[Any, Any, Any]:
        dX, dG, db = numpy.empty_like(hat), numpy.zeros_like(G), numpy.zeros_like(G)
        rows.backprop_layer_norm(_plain(dY), G, hat, scales, dX, dG, db)
        return dX, dG, db

    return Y, backprop


def _layer_norm_on_device(X: Any, G: Any, b: Any, eps: float) -> Tuple[Any, Callable]:
    Y, hat, scales = kernels.layer_norm(X, G, b, eps)

    def backprop(dY: Any) -> Tuple[Any, Any, Any]:
        dX = kernels.backprop_layer_norm(dY, G, hat, scales)
        return dX, (dY * hat).sum(axis=0), dY.sum(axis=0)

    return Y, backprop


def l2_normalise(
    ops: Ops, X: Floats2d, shortest: float
) -> Tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    """Scale each row to length 1.

    X (Floats2d): Shape (n, width), float32.
    shortest (float): Rows shorter than this are divided by it, so they stay shorter than 1.
    RETURNS (Tuple[Floats2d, Callable]): The rows; and the function that maps their gradient to
        that of X.
    """
    if isinstance(ops, DialogFastOps):
        return _l2_normalise_compiled(X, shortest)
    xp: Any = ops.xp
    lengths = xp.sqrt((X * X).sum(axis=1, keepdims=True))  # (n, 1)
    factors = 1 / xp.maximum(lengths, xp.float32(shortest))  # (n, 1)
    Y = X * factors  # (n, width)

    def backprop(dY: Any) -> Any:
        # The part along Y would only change the length, which is fixed, so it is removed.
        along = (dY * Y).sum(axis=1, keepdims=True) * (lengths > shortest)  # (n, 1)
        return (dY - Y * along) * factors  # (n, width)

    return Y, backprop


def _l2_normalise_compiled(X: Any, shortest: float) -> Tuple[Any, Callable]:
    rows, X = load_kernels("rows"), _plain(X)
    Y, lengths = numpy.empty_like(X), numpy.empty((X.shape[0],), dtype="f")
    rows.l2_normalise(X, shortest, Y, lengths)

    def backprop(dY: Any) -> Any:
        dX = numpy.empty_like(Y)
        rows.backprop_l2_normalise(_plain(dY), Y, lengths, shortest, dX)
        return dX

    return Y, backprop


def _plain(X: Any) -> Any:
    return numpy.ascontiguousarray(X, dtype="f")
