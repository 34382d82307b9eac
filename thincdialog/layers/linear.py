"""A linear layer, alone or cut off at 0: Thinc's, with fewer kernels on a GPU."""

from typing import Any, Callable, Optional, Tuple

from thinc.api import Model
from thinc.initializers import glorot_uniform_init, zero_init
from thinc.layers.linear import forward as thinc_linear
from thinc.layers.linear import init
from thinc.layers.relu import forward as thinc_relu
from thinc.types import Floats2d
from thinc.util import partial

from ..ops.dialog_cupy_ops import DialogCupyOps
from .gradients import gradient

InT = Floats2d
OutT = Floats2d


def Linear(
    nO: Optional[int] = None, nI: Optional[int] = None, *, init_W: Optional[Callable] = None
) -> Model[InT, OutT]:
    """Thinc's Linear.v1, with the same weights.

    nO, nI (Optional[int]): Width of output and input; from the data if None.
    init_W (Optional[Callable]): Initializer of the matrix; Glorot's uniform if None.
    X (Floats2d): Shape (n, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (n, nO).
    """
    return _layer("linear", forward, nO, nI, init_W)


def Relu(nO: Optional[int] = None, nI: Optional[int] = None) -> Model[InT, OutT]:
    """Thinc's Relu.v1, with the same weights; see ``Linear``."""
    return _layer("relu", _forward_relu, nO, nI, None)


def _layer(
    name: str,
    forward: Callable,
    nO: Optional[int],
    nI: Optional[int],
    init_W: Optional[Callable],
) -> Model[InT, OutT]:
    return Model(
        name,
        forward,
        init=partial(init, init_W or glorot_uniform_init, zero_init),
        dims={"nO": nO, "nI": nI},
        params={"W": None, "b": None},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    if not isinstance(model.ops, DialogCupyOps):
        return thinc_linear(model, X, is_train)
    return _forward_on_device(model, X)


def _forward_relu(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    if not isinstance(model.ops, DialogCupyOps):
        return thinc_relu(model, X, is_train)
    return _forward_on_device(model, X, is_cut=True)


def _forward_on_device(
    model: Model[InT, OutT], X: InT, *, is_cut: bool = False
) -> Tuple[OutT, Callable]:
    ops: Any = model.ops
    W = model.get_param("W")
    Y = ops.linear(X, W, model.get_param("b"), is_cut=is_cut)

    def backprop(dY: OutT) -> InT:
        gradients = gradient(model, "W"), gradient(model, "b")
        return ops.backprop_linear(dY, X, W, *gradients, Y if is_cut else None)

    return Y, backprop
