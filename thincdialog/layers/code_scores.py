"""Scores of candidates for contexts that have several vectors each."""

from typing import Any, Callable, Tuple, cast

from thinc.api import Model
from thinc.types import Floats2d

from ..registry import registry

InT = Tuple[Floats2d, Floats2d]
OutT = Floats2d


@registry.layers("thincdialog.CodeScores.v1")
def CodeScores() -> Model[InT, OutT]:
    """Let each candidate attend to the vectors of a context, and score it by its dot product with
    the result.

        A[k] = context[k] · candidate,    Y = sum of softmax(A) A

    X (Tuple[Floats2d, Floats2d]): The vectors of each context side by side, shape
        (n_contexts, n_codes * width); and candidates, shape (n_candidates, width); float32.
    RETURNS (Model[Tuple[Floats2d, Floats2d], Floats2d]): Output shape (n_contexts,
        n_candidates).
    SOURCE: Humeau et al. 2019, https://arxiv.org/abs/1905.01969
    """
    return Model("code_scores", forward)


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops = model.ops
    contexts, candidates = X
    n_candidates, width = candidates.shape
    n_contexts, n_codes = contexts.shape[0], contexts.shape[1] // width
    codes = ops.reshape2f(contexts, n_contexts * n_codes, width)
    products = ops.gemm(codes, candidates, trans2=True)  # (n_contexts * n_codes, n_candidates)
    A: Any = ops.reshape3f(products, n_contexts, n_codes, n_candidates)
    P = ops.xp.exp(A - A.max(axis=1, keepdims=True))  # shape as A
    P /= P.sum(axis=1, keepdims=True)
    Y: Any = (P * A).sum(axis=1)  # (n_contexts, n_candidates)

    def backprop(dY: OutT) -> InT:
        dA = A + 1  # The lines below turn this into dY/dA * dY = P * (A + 1 - Y) * dY.
        dA -= Y[:, None]
        dA *= P
        dA *= cast(Any, dY)[:, None]
        d_products = ops.reshape2f(dA, n_contexts * n_codes, n_candidates)
        d_codes = ops.gemm(d_products, candidates)  # (n_contexts * n_codes, width)
        d_candidates = ops.gemm(d_products, codes, trans1=True)  # (n_candidates, width)
        return ops.reshape2f(d_codes, n_contexts, n_codes * width), d_candidates

    return Y, backprop
