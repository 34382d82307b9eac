"""Learned vectors for the positions in a sequence."""

from typing import Any, Callable, Optional, Tuple, cast

import numpy
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..ops.bags import places_in_bags, sum_by_key
from ..ops.devices import upload
from ..ops.table_gradient import add_rows
from ..registry import registry

InT = Ragged
OutT = Ragged


@registry.layers("thincdialog.LearnedPositions.v1")
def LearnedPositions(nO: int, n_places: int = 256) -> Model[InT, OutT]:
    """Add a learned vector for each token's position to the token's vector.

        Y[t] = X[t] + P[place of t]

    nO (int): Width of input and output.
    n_places (int): Number of positions with their own vector, 1 or more; later tokens share the
        last one. P is zero at first.
    X (Ragged): Shape (n_tokens, nO), float32.
    RETURNS (Model[Ragged, Ragged]): Output shape (n_tokens, nO).
    RAISES (ValueError): If n_places is below 1.
    """
    if n_places < 1:
        raise ValueError(f"LearnedPositions: n_places = {n_places}, but it must be 1 or more")
    return Model(
        "learned_positions",
        forward,
        init=init,
        dims={"nO": nO, "nP": n_places},
        params={"P": None},
    )


def forward(model: Model[InT, OutT], Xr: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops = model.ops
    P = cast(Floats2d, model.get_param("P"))  # (n_places, nO)
    X = cast(Floats2d, Xr.dataXd)
    places: Any = numpy.minimum(places_in_bags(Xr.lengths), P.shape[0] - 1)
    (rows,) = upload(ops, places)
    Y = X + P[rows]  # (n_tokens, nO)

    def backprop(dYr: OutT) -> InT:
        dY = cast(Floats2d, dYr.dataXd)
        add_rows(model, "P", *sum_by_key(ops, dY, places))  # (n,), (n, nO)
        return dYr

    return Ragged(Y, Xr.lengths), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    model.set_param("P", model.ops.alloc2f(model.get_dim("nP"), model.get_dim("nO")))
