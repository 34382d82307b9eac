"""A linear layer without a bias."""

from typing import Callable, Optional, Tuple, cast

from thinc.api import Model
from thinc.initializers import glorot_uniform_init
from thinc.types import Floats2d
from thinc.util import get_width, partial

from ..registry import registry

InT = Floats2d
OutT = Floats2d


@registry.layers("thincdialog.Projection.v1")
def Projection(
    nO: Optional[int] = None, nI: Optional[int] = None, *, init_W: Optional[Callable] = None
) -> Model[InT, OutT]:
    """Multiply by a learned matrix, without a bias.

        Y = X Wᵀ

    nO (Optional[int]): Width of the output; from the data if None.
    nI (Optional[int]): Width of the input; from the data if None.
    init_W (Optional[Callable]): Initializer of the matrix; Glorot uniform if None.
    X (Floats2d): Shape (n, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (n, nO).
    """
    return Model(
        "projection",
        forward,
        init=partial(init, init_W or glorot_uniform_init),
        dims={"nO": nO, "nI": nI},
        params={"W": None},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    W = cast(Floats2d, model.get_param("W"))  # (nO, nI)
    Y = model.ops.gemm(X, W, trans2=True)  # (n, nO)

    def backprop(dY: OutT) -> InT:
        model.inc_grad("W", model.ops.gemm(dY, X, trans1=True))
        return model.ops.gemm(dY, W)  # (n, nI)

    return Y, backprop


def init(
    init_W: Callable, model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None
) -> None:
    if X is not None and model.has_dim("nI") is None:
        model.set_dim("nI", get_width(X))
    if Y is not None and model.has_dim("nO") is None:
        model.set_dim("nO", get_width(Y))
    model.set_param("W", init_W(model.ops, (model.get_dim("nO"), model.get_dim("nI"))))
