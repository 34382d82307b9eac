"""A linear layer with a gated activation."""

from typing import Callable, Optional, Tuple, cast

from thinc.api import Model
from thinc.initializers import glorot_uniform_init, zero_init
from thinc.types import Floats1d, Floats2d

from ..ops.swiglu import swiglu
from ..registry import registry

InT = Floats2d
OutT = Floats2d


@registry.layers("thincdialog.SwiGLU.v1")
def SwiGLU(nO: Optional[int] = None, nI: Optional[int] = None) -> Model[InT, OutT]:
    """Compute gates and values with a linear layer each, and multiply the values by the activated
    gates. The layer has twice the weights of a Gelu layer.

        Y = swish(W1 X + b1) * (W2 X + b2)        swish(z) = z sigmoid(z)

    nO, nI (Optional[int]): Width of output and input; from the data if None.
    X (Floats2d): Shape (n, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (n, nO).
    SOURCE: Shazeer 2020, https://arxiv.org/abs/2002.05202
    """
    return Model(
        "swiglu",
        forward,
        init=init,
        dims={"nO": nO, "nI": nI},
        params={"W": None, "b": None},  # W1 above W2, (2 * nO, nI); (2 * nO,)
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops = model.ops
    W = cast(Floats2d, model.get_param("W"))
    Z = ops.gemm(X, W, trans2=True)  # (n, 2 * nO)
    Y, backprop_gates = swiglu(ops, Z, cast(Floats1d, model.get_param("b")))  # (n, nO)

    def backprop(dY: OutT) -> InT:
        dZ, db = backprop_gates(dY)  # (n, 2 * nO), (2 * nO,)
        model.inc_grad("b", db)
        model.inc_grad("W", ops.gemm(dZ, X, trans1=True))
        return ops.gemm(dZ, W)  # (n, nI)

    return Y, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    if X is not None:
        model.set_dim("nI", X.shape[1])
    if Y is not None:
        model.set_dim("nO", Y.shape[1])
    nO, nI = model.get_dim("nO"), model.get_dim("nI")
    # Initialise each half separately: Glorot's bound for the whole matrix would be smaller.
    halves = [glorot_uniform_init(model.ops, (nO, nI)) for _ in range(2)]
    model.set_param("W", model.ops.xp.concatenate(halves))
    model.set_param("b", zero_init(model.ops, (2 * nO,)))
