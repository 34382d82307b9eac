"""The highest of several linear pieces: Thinc's, with fewer kernels on a GPU."""

from typing import Any, Callable, Tuple

from thinc.api import Model
from thinc.initializers import glorot_uniform_init, zero_init
from thinc.layers.maxout import forward as thinc_forward
from thinc.layers.maxout import init
from thinc.types import Floats2d
from thinc.util import partial

from ..ops.dialog_cupy_ops import DialogCupyOps
from ..ops.gpu import kernels
from .gradients import gradient

InT = Floats2d
OutT = Floats2d


def Maxout(nO: int, nI: int, nP: int) -> Model[InT, OutT]:
    """Thinc's Maxout.v1, with the same weights.

    nO, nI (int): Width of output and input.
    nP (int): Pieces.
    X (Floats2d): Shape (n, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (n, nO).
    """
    return Model(
        "maxout",
        forward,
        init=partial(init, glorot_uniform_init, zero_init),
        dims={"nO": nO, "nI": nI, "nP": nP},
        params={"W": None, "b": None},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops = model.ops
    if not isinstance(ops, DialogCupyOps):
        return thinc_forward(model, X, is_train)
    of_pieces: Any = model.get_param("W")  # (nO, nP, nI)
    nO, nP, nI = of_pieces.shape
    W = of_pieces.reshape((nO * nP, nI))
    pieces = ops.gemm(X, W, trans2=True).reshape((X.shape[0], nO, nP))
    Y, which = kernels.maxout(pieces, model.get_param("b"))  # (n, nO) each

    def backprop(dY: OutT) -> InT:
        d_pieces = kernels.backprop_maxout(dY, which, nP, gradient(model, "b"))
        dX = d_pieces.reshape((-1, nO * nP))
        ops.add_product(gradient(model, "W").reshape(W.shape), dX, X, trans1=True)
        return ops.gemm(dX, W)

    return Y, backprop
