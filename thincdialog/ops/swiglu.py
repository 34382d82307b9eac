"""A gated activation: one half of a row says how much of the other half counts."""

from typing import Any

from thinc.api import Ops
from thinc.types import Floats1d, Floats2d

from .dialog_cupy_ops import DialogCupyOps
from .dialog_fast_ops import DialogFastOps


def swiglu(ops: Ops, Z: Floats2d, b: Floats1d) -> Floats2d:
    """Gates, times their sigmoid, times values.

        Y = gates * sigmoid(gates) * values        gates, values = halves of each row of Z + b

    Z (Floats2d): Shape (n, 2 * width), float32, contiguous; Z + b takes its place.
    b (Floats1d): Shape (2 * width,).
    RETURNS (Floats2d): Shape (n, width).
    SOURCE: Shazeer 2020, https://arxiv.org/abs/2002.05202
    """
    if isinstance(ops, (DialogFastOps, DialogCupyOps)):
        return ops.swiglu(Z, b)
    Z += b
    gates, values = _halves(Z)
    Y = ops.sigmoid(gates)
    Y *= gates
    Y *= values
    return Y


def backprop_swiglu(ops: Ops, dY: Floats2d, Z: Floats2d, db: Floats1d) -> Floats2d:
    """The gradient of Z; that of b is added to ``db``.

    Z (Floats2d): As ``swiglu`` left it.
    """
    if isinstance(ops, (DialogFastOps, DialogCupyOps)):
        return ops.backprop_swiglu(dY, Z, db)
    gates, values = _halves(Z)
    shares = ops.sigmoid(gates)
    slopes = shares * (1 + gates * (1 - shares))
    dZ: Any = ops.xp.concatenate((dY * values * slopes, dY * gates * shares), axis=1)
    db += dZ.sum(axis=0)
    return dZ


def _halves(Z: Any) -> Any:
    width = Z.shape[1] // 2
    return Z[:, :width], Z[:, width:]
