"""Rows scaled to length 1."""

from typing import Callable, Optional, Tuple

from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import ArrayInfo, get_width

from ..ops.normalise import l2_normalise
from ..registry import registry

InT = Floats2d
OutT = Floats2d

# Shorter rows are not stretched to length 1, so that an empty text stays near zero.
_SHORTEST = 1e-6


@registry.layers("thincdialog.L2Normalise.v1")
def L2Normalise() -> Model[InT, OutT]:
    """Scale every row to length 1, so that dot products are cosines.

        Y = X / max(|X|, 1e-6)

    X (Floats2d): Shape (nB, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (nB, nI).
    """
    return Model("l2_normalise", forward, init=init, dims={"nI": None, "nO": None})


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    Y, backprop_rows = l2_normalise(model.ops, X, _SHORTEST)  # (nB, nI)
    info = ArrayInfo.from_array(Y)

    def backprop(dY: OutT) -> InT:
        info.check_consistency(dY)
        return backprop_rows(dY)

    return Y, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    """Output as wide as the input; for other layers, too."""
    example = Y if X is None else X
    if example is not None:
        width = get_width(example)
        model.set_dim("nI", width)
        model.set_dim("nO", width)
