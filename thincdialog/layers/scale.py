"""Multiplication by one number, learned or constant."""

import math
from typing import Callable, Dict, Optional, Tuple

from thinc.api import Model
from thinc.types import Floats2d

from ..registry import registry
from .normalise import init as init_widths

InT = Floats2d
OutT = Floats2d


@registry.layers("thincdialog.Scale.v1")
def Scale(initial: float = 10.0, *, maximum: float = 100.0) -> Model[InT, OutT]:
    """Multiply by a learned positive number: an inverse temperature for cosines, which are too
    small for a softmax without it.

        Y = min(exp(s), maximum) * X

    initial (float): Initial value of exp(s), above 0.
    maximum (float): Largest factor, at least ``initial``. Beyond it, s only takes gradients that
        make it smaller.
    X (Floats2d): Shape (nB, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (nB, nI).
    RAISES (ValueError): If not 0 < initial <= maximum.
    SOURCE: Radford et al. 2021, https://arxiv.org/abs/2103.00020, section 2.5
    """
    if not 0 < initial <= maximum:
        raise ValueError(f"Scale: initial = {initial}, but it must be in (0, {maximum}]")
    return Model(
        "scale",
        forward,
        init=init,
        dims={"nI": None, "nO": None},
        params={"s": None},
        attrs={"initial": initial, "maximum": maximum},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    xp = model.ops.xp
    grown = xp.exp(model.get_param("s"))  # (1,)
    factor = xp.minimum(grown, xp.float32(model.attrs["maximum"]))  # (1,)
    Y = X * factor  # (nB, nI)

    def backprop(dY: OutT) -> InT:
        ds = xp.sum(dY * X) * factor
        # Beyond the maximum, s may only become smaller.
        is_free = (grown <= model.attrs["maximum"]) | (ds > 0)
        model.inc_grad("s", (ds * is_free).astype("f"))
        return dY * factor

    return Y, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    init_widths(model, X, Y)
    model.set_param("s", model.ops.alloc1f(1) + math.log(model.attrs["initial"]))


@registry.layers("thincdialog.times.v1")
def times(factor: float) -> Model[InT, OutT]:
    """Multiply by a constant: an inverse temperature that is not trained.

        Y = factor * X

    factor (float): Any number except 0.
    X (Floats2d): Shape (nB, nI), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (nB, nI).
    RAISES (ValueError): If factor is 0.
    """
    if factor == 0:
        raise ValueError("times: factor = 0, but then the output would always be 0")
    dims: Dict[str, Optional[int]] = {"nI": None, "nO": None}
    return Model("times", _forward_times, init=init_widths, dims=dims, attrs={"factor": factor})


def _forward_times(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    factor = model.ops.xp.float32(model.attrs["factor"])

    def backprop(dY: OutT) -> InT:
        return dY * factor

    return X * factor, backprop  # (nB, nI)
