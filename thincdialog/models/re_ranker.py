"""A re-ranker: a fast model selects the best candidates, a slow one scores them again."""

from typing import Any, Callable, Optional, Tuple

import numpy as np
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..ops.devices import upload
from ..registry import registry
from .bi_encoder import ENCODERS
from .poly_encoder import SCORER

InT = Tuple[Ragged, Ragged]
OutT = Floats2d
SECOND = "second"


@registry.models("thincdialog.ReRanker.v1")
def ReRanker(first: Model[InT, OutT], second: Model, n_best: int = 16) -> Model[InT, OutT]:
    """Score all candidates with a first model, and add the scores of a second one for the best
    candidates of each conversation. Both models learn together; the second one learns from the
    current mistakes of the first.

    The parts of the first model, such as ``model.get_ref("context_encoder")``, are also parts of
    this one; the second model is ``model.get_ref("second")``.

    first (Model[Tuple[Ragged, Ragged], Floats2d]): Scores every candidate, such as
        ``thincdialog.BiEncoder.v1``.
    second (Model[Tuple[Ragged, Ragged, Ints2d], Floats2d]): Scores given pairs, such as
        ``thincdialog.CrossEncoder.v1``.
    n_best (int): Number of candidates that the second model scores, 1 or more.
    X (Tuple[Ragged, Ragged]): Conversations and candidates: token ids and segments, int32.
    RETURNS (Model[Tuple[Ragged, Ragged], Floats2d]): Output shape (n_examples,
        n_candidates).
    RAISES (ValueError): If n_best is below 1.
    SOURCE: Nogueira and Cho 2019, https://arxiv.org/abs/1901.04085
    """
    if n_best < 1:
        raise ValueError(f"n_best = {n_best}, but it must be 1 or more")
    parts = {name: first.get_ref(name) for name in (*ENCODERS, SCORER) if first.has_ref(name)}
    return Model(
        "re_ranker",
        forward,
        init=init,
        layers=[first, second],
        refs={**parts, SECOND: second},
        attrs={"n_best": n_best},
        dims={"nO": None},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops = model.ops
    first, second = model.layers
    scores, backprop_first = first(X, is_train)  # (n_examples, n_candidates)
    pairs: Any = best_pairs(ops.to_numpy(scores), model.attrs["n_best"])
    rows, columns = upload(ops, pairs[:, 0], pairs[:, 1])
    more, backprop_second = second((*X, pairs), is_train)  # (n_pairs, 1)
    Y: Any = scores.copy()
    Y[rows, columns] += more[:, 0]

    def backprop(dY: Any) -> InT:
        backprop_second(ops.reshape2f(dY[rows, columns], len(pairs), 1))
        return backprop_first(dY)

    return Y, backprop


def best_pairs(scores: np.ndarray, n_best: int) -> np.ndarray:
    """Return the row and column numbers of the ``n_best`` highest scores of each row.

    scores (np.ndarray): Shape (n_rows, n_columns).
    RETURNS (np.ndarray): Pairs of a row and a column, those of a row in no particular order; int32,
        shape (n_rows * min(n_best, n_columns), 2).
    """
    n_rows, n_columns = scores.shape
    n_best = min(n_best, n_columns)
    columns = np.argpartition(scores, n_columns - n_best, axis=1)[:, n_columns - n_best :]
    rows = np.repeat(np.arange(n_rows), n_best)
    return np.stack([rows, columns.ravel()], axis=1).astype(np.int32)


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[Any] = None) -> None:
    first, second = model.layers
    first.initialize(X=X)
    if first.has_dim("nO"):
        model.set_dim("nO", first.get_dim("nO"))
    second.initialize(X=None if X is None else (*X, np.zeros((1, 2), dtype="i")))
