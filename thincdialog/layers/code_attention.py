"""Attention of learned codes to each sequence, which gives one vector per code."""

from typing import Any, Callable, Optional, Tuple, cast

import numpy
from thinc.api import Model
from thinc.initializers import normal_init
from thinc.types import Floats2d, Ragged
from thinc.util import get_width

from ..ops.attention import across, attend
from ..ops.devices import on_host
from ..registry import registry

InT = Ragged
OutT = Floats2d


@registry.layers("thincdialog.CodeAttention.v1")
def CodeAttention(n_codes: int = 16, nI: Optional[int] = None) -> Model[InT, OutT]:
    """Let learned codes attend to the tokens of each sequence, and return one vector per code.

        Y[sequence * n_codes + k] = softmax(C[k] Xᵀ) X        over the sequence's tokens

    n_codes (int): Number of codes, 1 or more.
    nI (Optional[int]): Width of a token's vector; from the data if None.
    X (Ragged): Shape (n_tokens, nI), float32.
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_sequences * n_codes, nI); 0 for a
        sequence without tokens.
    RAISES (ValueError): If n_codes is below 1.
    SOURCE: Humeau et al. 2019, https://arxiv.org/abs/1905.01969
    """
    if n_codes < 1:
        raise ValueError(f"CodeAttention: n_codes = {n_codes}, but it must be 1 or more")
    dims = {"nC": n_codes, "nI": nI, "nO": nI}
    return Model("code_attention", forward, init=init, dims=dims, params={"C": None})


def forward(model: Model[InT, OutT], Xr: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, lengths = model.ops, on_host(Xr.lengths)
    X = cast(Floats2d, Xr.dataXd)
    C: Any = model.get_param("C")  # (n_codes, nI)
    n, (n_codes, nI) = len(lengths), C.shape
    Q = ops.xp.tile(C, (n, 1))  # (n_sequences * n_codes, nI)
    spans = across(numpy.full(n, n_codes), lengths)
    Y, backprop_attend = attend(ops, Q, X, X, spans, 1, scale=1.0, is_train=is_train)

    def backprop(dY: OutT) -> InT:
        dQ, dK, dV = cast(Any, backprop_attend(dY))
        model.inc_grad("C", dQ.reshape((n, n_codes, nI)).sum(axis=0))
        dK += dV
        return Ragged(dK, Xr.lengths)

    return Y, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    if X is not None and model.has_dim("nI") is None:
        model.set_dim("nI", get_width(X))
    width = model.get_dim("nI")
    model.set_dim("nO", width)
    C = normal_init(model.ops, (model.get_dim("nC"), width), mean=0.0)
    model.set_param("C", C)
