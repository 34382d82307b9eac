"""Multiplication by a constant."""

from typing import Callable, Tuple

from thinc.api import Model
from thinc.types import Floats2d

from ..registry import registry
from .l2_normalise import init

InT = Floats2d
OutT = Floats2d


@registry.layers("thincdialog.times.v1")
def times(factor: float) -> Model[InT, OutT]:
    """Multiply by a constant: an inverse temperature that is not learnt.

        Y = factor * X

    factor (float): Any number but 0.
    X (Floats2d): Shape (nB, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (nB, nI).
    RAISES (ValueError): If factor is 0.
    """
    if factor == 0:
        raise ValueError("times: factor = 0, but then nothing is left of the input")
    attrs = {"factor": factor}
    return Model("times", forward, init=init, dims={"nI": None, "nO": None}, attrs=attrs)


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    factor = model.ops.xp.float32(model.attrs["factor"])

    def backprop(dY: OutT) -> InT:
        return dY * factor

    return X * factor, backprop  # (nB, nI)
