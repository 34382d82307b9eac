"""Embeddings of tokens and their segments."""

from typing import Any, Callable, Optional, Tuple, cast

import numpy
from thinc.api import Model
from thinc.initializers import uniform_init
from thinc.types import Floats2d, Ragged
from thinc.util import partial

from ..ops.bags import sum_by_key
from ..ops.devices import host_tokens, no_gradient, upload
from ..ops.table_gradient import TouchedRows, add_rows
from ..registry import registry
from .first_values import first_table

InT = Ragged
OutT = Ragged


@registry.layers("thincdialog.TokenEmbed.v1")
def TokenEmbed(
    nO: int, nV: Optional[int] = None, *, n_segments: int = 2, init_E: Optional[Callable] = None
) -> Model[InT, OutT]:
    """Embed each token as the sum of a vector for its id and one for its segment.

        Y[t] = E[id_t] + S[segment_t]

    nO (int): Width of a vector.
    nV (Optional[int]): Number of token ids; set before initialize (``set_vocabulary``).
    n_segments (int): Number of segments (turns back) with their own vector, 1 or more; older ones
        share the last. S is zero at first.
    init_E (Optional[Callable]): Initializer of E; uniform in +-0.1 if None.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): Output shape (n_tokens, nO).
    RAISES (ValueError): If n_segments is below 1.
    """
    if n_segments < 1:
        raise ValueError(f"TokenEmbed: n_segments = {n_segments}, but it must be 1 or more")
    return Model(
        "token_embed",
        forward,
        init=partial(init, init_E or partial(uniform_init, lo=-0.1, hi=0.1)),
        dims={"nO": nO, "nV": nV, "nS": n_segments},
        params={"E": None, "S": None},
        attrs={"touched_rows": TouchedRows()},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops: Any = model.ops
    E = cast(Floats2d, model.get_param("E"))
    S = cast(Floats2d, model.get_param("S"))
    tokens: Any = host_tokens(X)[0]
    ids, segments = tokens[:, 0], numpy.minimum(tokens[:, 1], S.shape[0] - 1)  # (n_tokens,) each
    rows, rows_of_S = upload(ops, ids, segments)
    Y = E[rows] + S[rows_of_S]  # (n_tokens, nO)

    def backprop(dYr: OutT) -> InT:
        dY = cast(Floats2d, dYr.dataXd)
        model.attrs["touched_rows"].add(model, *sum_by_key(ops, dY, ids))  # (n,), (n, nO)
        add_rows(model, "S", *sum_by_key(ops, dY, segments))
        return no_gradient(X)

    return Ragged(Y, X.lengths), backprop


def init(
    init_E: Callable, model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None
) -> None:
    nO = model.get_dim("nO")
    model.set_param("E", first_table(init_E, model.ops, (model.get_dim("nV"), nO)))
    model.set_param("S", model.ops.alloc2f(model.get_dim("nS"), nO))
