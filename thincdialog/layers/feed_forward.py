"""A feed-forward net beside a short cut."""

from typing import Any, Callable, List, Optional, Tuple

from thinc.api import Model, chain, residual
from thinc.layers.chain import forward as forward_chain
from thinc.layers.chain import init
from thinc.types import Floats2d

from ..ops.dialog_cupy_ops import DialogCupyOps
from ..ops.gpu import kernels
from ..registry import registry
from .dropout import CheckedDropout, rate_now
from .gradients import gradient
from .layer_norm import LayerNorm
from .linear import Linear, Relu

InT = Floats2d
OutT = Floats2d


@registry.layers("thincdialog.ResidualFeedForward.v1")
def ResidualFeedForward(
    nO: int, nH: Optional[int] = None, *, dropout: float = 0.0
) -> Model[Floats2d, Floats2d]:
    """One hidden layer, its output added to the input, and layer normalisation.

        Y = layer_norm(X + dropout(W2 relu(W1 X + b1) + b2))

    nO (int): Width of input and output.
    nH (Optional[int]): Width of the hidden layer; 2 * nO if None.
    dropout (float): Probability of zeroing a cell of the net's output, 0.0 to 1.0.
    X (Floats2d): Shape (nB, nO), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (nB, nO).
    """
    net = chain(Relu(nH or 2 * nO, nO), Linear(nO, nH or 2 * nO), CheckedDropout(dropout))
    layers: List[Model] = [residual(net), LayerNorm(nO)]
    name = ">>".join(layer.name for layer in layers)
    return Model(name, forward, init=init, dims={"nO": nO, "nI": nO}, layers=layers)


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    if not isinstance(model.ops, DialogCupyOps):
        return forward_chain(model, X, is_train)
    return _forward_on_device(model, X, is_train)


def _forward_on_device(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops: Any = model.ops
    short_cut, norm = model.layers
    relu, linear, dropout = short_cut.layers[0].layers
    W1, b1, W2, b2 = (layer.get_param(name) for layer in (relu, linear) for name in "Wb")
    mask = ops.next_mask(rate_now(dropout, is_train))
    G = norm.get_param("G")
    H = ops.linear(X, W1, b1, is_cut=True)  # (nB, nH)
    Z = ops.gemm(H, W2, trans2=True)  # (nB, nO)
    Y, hat, scales = kernels.add_norm(Z, b2, X, (G, norm.get_param("b")), mask)

    def backprop(dY: OutT) -> InT:
        to = gradient(norm, "G"), gradient(norm, "b"), gradient(linear, "b")
        dX, dZ = kernels.backprop_add_norm(dY, G, hat, scales, mask, to)  # (nB, nO) each
        ops.add_product(gradient(linear, "W"), dZ, H, trans1=True)
        dH = ops.gemm(dZ, W2)  # (nB, nH)
        dW, db = gradient(relu, "W"), gradient(relu, "b")
        return ops.backprop_linear(dH, X, W1, dW, db, H, into=dX)

    return Y, backprop
