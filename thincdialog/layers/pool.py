"""Pooling of each sequence into one vector."""

from typing import Any, Callable, Literal, Optional, Tuple, cast

from thinc.api import Model
from thinc.types import Floats2d, Ragged
from thinc.util import get_width

from ..ops.devices import on_host, upload
from ..registry import registry

InT = Ragged
OutT = Floats2d
How = Literal["max", "mean", "max+mean", "first"]


@registry.layers("thincdialog.pool.v1")
def pool(how: How = "max") -> Model[InT, OutT]:
    """Pool the tokens of each sequence into their highest values, their mean, both side by side, or
    the first token's vector. Unlike Thinc's reduce_max, this layer accepts an empty sequence and
    gives zeros for it.

    how (str): "max", "mean", "max+mean" or "first".
    X (Ragged): Shape (n_tokens, nI), float32.
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_sequences, nI), or (n_sequences, 2 * nI) for
        "max+mean".
    """
    return Model("pool", forward, init=init, dims={"nI": None, "nO": None}, attrs={"how": how})


def forward(model: Model[InT, OutT], Xr: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, how = model.ops, model.attrs["how"]
    X = cast(Floats2d, Xr.dataXd)
    # The sequences that have tokens, and their numbers of tokens: (n_full,) each.
    all_lengths: Any = on_host(Xr.lengths)
    (full,) = upload(ops, all_lengths.nonzero()[0])
    lengths = all_lengths[all_lengths > 0]
    highest, means = X[:0], X[:0]  # (n_full, nI) each
    which: Any = None
    if "max" in how and X.shape[0]:
        highest, which = ops.reduce_max(X, lengths)
    if "mean" in how and X.shape[0]:
        means = ops.reduce_mean(X, lengths)
    (firsts,) = upload(ops, lengths.cumsum() - lengths)
    pooled = [X[firsts]] if how == "first" else []
    pooled += [highest] if "max" in how else []
    pooled += [means] if "mean" in how else []
    width = X.shape[1]
    Y = ops.alloc2f(Xr.lengths.shape[0], width * len(pooled))  # (n_sequences, nO)
    Y[full] = ops.xp.concatenate(pooled, axis=1)

    def backprop(dY: OutT) -> InT:
        dX = ops.alloc2f(*X.shape)  # (n_tokens, nI)
        if not X.shape[0]:
            return Ragged(dX, Xr.lengths)
        d_full = dY[full]
        if how == "first":
            dX[firsts] = d_full
        if "max" in how:
            d_highest = ops.as_contig(d_full[:, :width])
            dX += ops.backprop_reduce_max(d_highest, which, lengths)
        if "mean" in how:
            dX += ops.backprop_reduce_mean(ops.as_contig(d_full[:, -width:]), lengths)
        return Ragged(dX, Xr.lengths)

    return Y, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    n_parts = 2 if model.attrs["how"] == "max+mean" else 1
    if X is not None:
        model.set_dim("nI", get_width(X))
        model.set_dim("nO", get_width(X) * n_parts)
