"""SwiGLU, a gated activation: one half of a row gates the other half."""

from typing import Any, Callable, Tuple

import numpy
from thinc.api import Ops
from thinc.types import Floats1d, Floats2d

from .compiled import load_kernels
from .dialog_cupy_ops import DialogCupyOps
from .dialog_fast_ops import DialogFastOps
from .gpu import kernels


def swiglu(
    ops: Ops, Z: Floats2d, b: Floats1d
) -> Tuple[Floats2d, Callable[[Floats2d], Tuple[Floats2d, Floats1d]]]:
    """Multiply values by their gates and by the sigmoid of the gates.

        Y = gates * sigmoid(gates) * values        gates, values = halves of each row of Z + b

    Z (Floats2d): Shape (n, 2 * width), float32, contiguous; overwritten with Z + b.
    b (Floats1d): Shape (2 * width,).
    RETURNS (Tuple[Floats2d, Callable]): Y, shape (n, width); and the function that maps the
        gradient of Y to those of Z and b.
    SOURCE: Shazeer 2020, https://arxiv.org/abs/2002.05202
    """
    if isinstance(ops, DialogFastOps):
        return _swiglu_compiled(Z, b)
    if isinstance(ops, DialogCupyOps):
        Y = kernels.swiglu(Z, b)

        def backprop_on_device(dY: Any) -> Tuple[Any, Any]:
            dZ = kernels.backprop_swiglu(dY, Z)
            return dZ, dZ.sum(axis=0)

        return Y, backprop_on_device
    Z += b
    width = Z.shape[1] // 2
    gates, values = Z[:, :width], Z[:, width:]
    Y = ops.sigmoid(gates)
    Y *= gates
    Y *= values

    def backprop(dY: Any) -> Tuple[Any, Any]:
        shares = ops.sigmoid(gates)
        slopes = shares * (1 + gates * (1 - shares))
        dZ: Any = ops.xp.concatenate((dY * values * slopes, dY * gates * shares), axis=1)
        return dZ, dZ.sum(axis=0)

    return Y, backprop


def _swiglu_compiled(Z: Any, b: Any) -> Tuple[Any, Callable]:
    compiled = load_kernels("swiglu")
    Y = numpy.empty((Z.shape[0], Z.shape[1] // 2), dtype="f")
    compiled.swiglu(Z, numpy.ascontiguousarray(b), Y)

    def backprop(dY: Any) -> Tuple[Any, Any]:
        dZ, db = numpy.empty_like(Z), numpy.zeros_like(b)
        compiled.backprop_swiglu(numpy.ascontiguousarray(dY, dtype="f"), Z, dZ, db)
        return dZ, db

    return Y, backprop
