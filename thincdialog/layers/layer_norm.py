"""Layer normalisation, compiled where the ops are."""

from typing import Callable, Optional, Tuple, cast

from thinc.api import Model
from thinc.layers.layernorm import init
from thinc.types import Floats1d, Floats2d
from thinc.util import ArrayInfo

from ..ops.normalise import layer_norm
from ..registry import registry

InT = Floats2d
OutT = Floats2d


@registry.layers("thincdialog.LayerNorm.v1")
def LayerNorm(nI: Optional[int] = None) -> Model[InT, OutT]:
    """Thinc's LayerNorm.v1, with the same weights; in one pass with our kernels.

        Y = G (X - mean) / sqrt(variance + 1e-8) + b        of each row

    nI (Optional[int]): Width; from the data if None.
    X (Floats2d): Shape (nB, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (nB, nI).
    SOURCE: Ba et al. 2016, https://arxiv.org/abs/1607.06450
    """
    dims = {"nI": nI, "nO": nI}
    return Model("layernorm", forward, init=init, dims=dims, params={"G": None, "b": None})


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    G, b = (cast(Floats1d, model.get_param(name)) for name in "Gb")
    Y, backprop_rows = layer_norm(model.ops, X, G, b)  # (nB, nI)
    info = ArrayInfo.from_array(Y)

    def backprop(dY: OutT) -> InT:
        info.check_consistency(dY)
        dX, dG, db = backprop_rows(dY)  # (nB, nI), (nI,) twice
        model.inc_grad("G", dG)
        model.inc_grad("b", db)
        return dX

    return Y, backprop
