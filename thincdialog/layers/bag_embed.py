"""An embedding table whose rows are summed over each example's tokens."""

from typing import Any, Callable, Literal, Optional, Tuple, cast

import numpy
from thinc.api import Model
from thinc.initializers import uniform_init
from thinc.types import Floats1d, Floats2d, Ragged
from thinc.util import get_width, partial

from ..ops.bags import row_gradients, split_bags, sum_bags
from ..ops.devices import HostInts, host_tokens, no_gradient
from ..ops.table_gradient import TouchedRows
from ..registry import registry
from .first_values import first_table

InT = Ragged
OutT = Floats2d
Pooling = Literal["mean", "sum", "sqrt"]
Segments = Literal["merge", "weight", "separate", "tables"]


@registry.layers("thincdialog.BagEmbed.v1")
def BagEmbed(
    nO: Optional[int] = None,
    nV: Optional[int] = None,
    *,
    pooling: Pooling = "mean",
    segments: Segments = "merge",
    n_segments: int = 2,
    init_E: Optional[Callable] = None,
) -> Model[InT, OutT]:
    """Sum the embeddings of an example's tokens. Fast, but ignores word order.

        Y[b] = sum_t E[id_t] / n   (or / sqrt(n), or not divided)

    nO (Optional[int]): Width of the output; from the data if None. Separate segments have
        nO / n_segments columns each.
    nV (Optional[int]): Number of token ids; set before initialize (``set_vocabulary``).
    pooling (str): Divide the sum of n embeddings by n ("mean"), by its square root ("sqrt"),
        or not at all ("sum").
    segments (str): A token's segment is the number of turns back in which it lies. "merge" pools
        all tokens together. "weight" pools each segment separately and adds the results with
        learned weights, initially 1. "separate" pools each segment and puts the results side by
        side. "tables" pools all tokens together, but each segment has its own rows in the table,
        with the same initial values.
    n_segments (int): Number of segments, 1 or more; the last covers all older turns. "merge"
        does not use it.
    init_E (Optional[Callable]): Initializer of the table; uniform in +-0.1 if None.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2), on the host.
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, nO); zeros for an example without
        tokens.
    RAISES (ValueError): If nO cannot be divided among the segments.
    """
    nS = 1 if segments == "merge" else n_segments
    if nS < 1:
        raise ValueError(f"BagEmbed: n_segments is {n_segments}, but must be 1 or more")
    if segments == "separate" and (nO is None or nO % nS):
        raise ValueError(f"BagEmbed: nO = {nO} cannot be divided by n_segments = {nS}")
    return Model(
        "bag_embed",
        forward,
        init=partial(init, init_E or partial(uniform_init, lo=-0.1, hi=0.1)),
        dims={"nO": nO, "nV": nV, "nS": nS},
        params={"E": None, "w": None} if segments == "weight" else {"E": None},
        attrs={"pooling": pooling, "segments": segments, "touched_rows": TouchedRows()},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, segments = model.ops, model.attrs["segments"]
    E = cast(Floats2d, model.get_param("E"))  # (n_rows, width)
    n_examples, nS = X.lengths.shape[0], model.get_dim("nS")
    # One bag for each example, or one for each (example, segment), ordered by example.
    ids, lengths = _bags(X, segments, nS)  # (n_tokens,), (n_bags,)
    scale = _scale(lengths, model.attrs["pooling"])  # (n_bags, 1)
    pooled = sum_bags(ops, E, ids, lengths, scale)  # (n_bags, width)
    if segments == "weight":
        w = cast(Floats1d, model.get_param("w"))
        by_segment = pooled.reshape((n_examples, nS, E.shape[1]))
        Y = ops.xp.einsum("bsd,s->bd", by_segment, w)  # (n_examples, nO)
    else:
        Y = pooled.reshape((n_examples, model.get_dim("nO")))

    def backprop(dY: OutT) -> InT:
        if segments == "weight":
            model.inc_grad("w", ops.xp.einsum("bsd,bd->s", by_segment, dY))
            d_pooled = ops.xp.einsum("bd,s->bsd", dY, w).reshape(pooled.shape)
        else:
            d_pooled = dY.reshape(pooled.shape)  # (n_bags, width)
        # The distinct rows and their gradients: (n,), (n, width).
        rows, values = row_gradients(ops, d_pooled, ids, lengths, scale)
        model.attrs["touched_rows"].add(model, rows, values)
        return no_gradient(X)

    return Y, backprop


def init(
    init_E: Callable, model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None
) -> None:
    if Y is not None and model.has_dim("nO") is None:
        model.set_dim("nO", get_width(Y))
    width = model.get_dim("nO")
    if model.attrs["segments"] == "separate":
        width //= model.get_dim("nS")
    E = first_table(init_E, model.ops, (model.get_dim("nV"), width))
    if model.attrs["segments"] == "tables":
        E = model.ops.xp.repeat(E, model.get_dim("nS"), axis=0)
    model.set_param("E", E)
    if model.has_param("w") is not False:
        model.set_param("w", model.ops.alloc1f(model.get_dim("nS")) + 1)


def _bags(X: Ragged, segments: str, nS: int) -> Tuple[HostInts, HostInts]:
    """Return the table rows of all tokens, bag after bag, int32; and the number of rows of each
    bag."""
    tokens, lengths = host_tokens(X)
    if segments == "tables":  # The table has nS rows for each id.
        return tokens[:, 0] * nS + numpy.minimum(tokens[:, 1], nS - 1), lengths
    if nS == 1:
        return numpy.ascontiguousarray(tokens[:, 0]), lengths
    return split_bags(tokens, lengths, nS)


def _scale(lengths: Any, pooling: str) -> Any:
    """Return the factor of each bag's sum, shape (n_bags, 1)."""
    n = numpy.maximum(lengths, 1).astype("f")[:, None]
    if pooling == "sum":
        return numpy.ones_like(n)
    return 1 / n if pooling == "mean" else 1 / numpy.sqrt(n)
