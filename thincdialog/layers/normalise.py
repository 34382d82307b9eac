"""Layers that scale rows to length 1, or to mean 0 and variance 1."""

from typing import Callable, Optional, Tuple, cast

from thinc.api import Model
from thinc.layers.layernorm import init as init_layer_norm
from thinc.types import Floats1d, Floats2d
from thinc.util import get_width

from ..ops.normalise import l2_normalise, layer_norm
from ..registry import registry

InT = Floats2d
OutT = Floats2d

# Shorter rows do not get length 1, so that the vector of an empty text stays near zero.
_SHORTEST = 1e-6


@registry.layers("thincdialog.L2Normalise.v1")
def L2Normalise() -> Model[InT, OutT]:
    """Scale every row to length 1, so that dot products are cosines.

        Y = X / max(|X|, 1e-6)

    X (Floats2d): Shape (nB, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (nB, nI).
    """
    return Model("l2_normalise", _forward_l2, init=init, dims={"nI": None, "nO": None})


def _forward_l2(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    return l2_normalise(model.ops, X, _SHORTEST)  # (nB, nI)


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    """Set the widths of input and output to that of the example data. Other layers use this,
    too."""
    example = Y if X is None else X
    if example is not None:
        width = get_width(example)
        model.set_dim("nI", width)
        model.set_dim("nO", width)


@registry.layers("thincdialog.LayerNorm.v1")
def LayerNorm(nI: Optional[int] = None, eps: float = 1e-8) -> Model[InT, OutT]:
    """Normalise each row to mean 0 and variance 1: Thinc's LayerNorm.v1 with the same weights, but
    computed in one pass by our kernels.

        Y = G (X - mean) / sqrt(variance + eps) + b        of each row

    nI (Optional[int]): Width; from the data if None.
    eps (float): Added to the variance, so that it is never zero.
    X (Floats2d): Shape (nB, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (nB, nI).
    SOURCE: Ba et al. 2016, https://arxiv.org/abs/1607.06450
    """
    return Model(
        "layernorm",
        _forward_norm,
        init=init_layer_norm,
        dims={"nI": nI, "nO": nI},
        params={"G": None, "b": None},
        attrs={"eps": eps},
    )


def _forward_norm(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    return add_and_normalise(model, X)


def add_and_normalise(
    model: Model[InT, OutT], X: InT, added: Optional[InT] = None
) -> Tuple[OutT, Callable]:
    """Apply a LayerNorm to the sum of two arrays in one pass. Both arrays have the same gradient,
    which the returned function gives.

    model (Model[Floats2d, Floats2d]): The LayerNorm.
    added (Optional[Floats2d]): Array to add, shape as X.
    """
    G, b = (cast(Floats1d, model.get_param(name)) for name in "Gb")
    # (nB, nI)
    Y, backprop_rows = layer_norm(model.ops, X, G, b, model.attrs["eps"], added=added)

    def backprop(dY: OutT) -> InT:
        dX, dG, db = backprop_rows(dY)  # (nB, nI), (nI,) twice
        model.inc_grad("G", dG)
        model.inc_grad("b", db)
        return dX

    return Y, backprop
