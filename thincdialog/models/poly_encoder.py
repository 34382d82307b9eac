"""Several vectors for each conversation, one for each candidate."""

from typing import Any, Callable, Literal, Optional, Tuple

from thinc.api import Model, chain
from thinc.types import Floats2d, Ragged

from ..layers.code_attention import CodeAttention
from ..layers.code_scores import CodeScores
from ..layers.l2_normalise import L2Normalise
from ..layers.pool import pool
from ..layers.scale import Scale
from ..registry import registry
from .bi_encoder import ENCODERS
from .encoded_in_one import encode_both

InT = Tuple[Ragged, Ragged]
OutT = Floats2d
SCORER = "scorer"


@registry.models("thincdialog.PolyEncoder.v1")
def PolyEncoder(
    tokens: Model[Ragged, Ragged],
    n_codes: int = 16,
    share: Literal["all", "nothing"] = "all",
    pooling: Literal["max", "mean"] = "mean",
    scale: float = 10.0,
) -> Model[InT, OutT]:
    """Encodes conversations by what learned codes find in them, and candidate replies by one
    vector, with which a reply attends to the conversation's vectors. Candidates can be encoded
    once, as with ``BiEncoder``.

    Its parts are ``model.get_ref("context_encoder")`` (Ragged to Floats2d, the vectors of a
    conversation side by side), ``"candidate_encoder"`` (Ragged to Floats2d) and ``"scorer"``.

    tokens (Model[Ragged, Ragged]): A vector for each token, such as
        ``thincdialog.TransformerTokens.v1``.
    n_codes (int): Vectors of a conversation, 1 or more.
    share (str): Whether conversations and replies have "all" of tokens in common, or "nothing"
        (replies get a copy).
    pooling (str): "max" or "mean" over a reply's tokens.
    scale (float): Factor of the cosines at first, above 0 and at most 100.
    X (Tuple[Ragged, Ragged]): Conversations and candidates: ids and segments, int32.
    RETURNS (Model[Tuple[Ragged, Ragged], Floats2d]): Output shape (n_examples,
        n_candidates).
    SOURCE: Humeau et al. 2019, https://arxiv.org/abs/1905.01969
    """
    codes = (CodeAttention(n_codes), L2Normalise(), Scale(scale), side_by_side(n_codes))
    contexts: Model = chain(tokens, *codes)
    of_replies = tokens if share == "all" else tokens.copy()
    candidates: Model = chain(of_replies, pool(pooling), L2Normalise())
    layers = (contexts, candidates, CodeScores())
    return Model(
        "poly_encoder",
        forward,
        init=init,
        layers=list(layers),
        refs=dict(zip((*ENCODERS, SCORER), layers)),
        dims={"nO": None},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    *encoders, score = model.layers
    # (n_examples, n_codes * width), (n_candidates, width)
    (contexts, candidates), backprop_encoders = encode_both(encoders, X, is_train)
    scores, backprop_scores = score((contexts, candidates), is_train)  # (n_examples, n_candidates)

    def backprop(d_scores: OutT) -> InT:
        d_contexts, d_candidates = backprop_scores(d_scores)
        return backprop_encoders(d_contexts, d_candidates)

    return scores, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[Any] = None) -> None:
    for index, encoder in enumerate(model.layers[:2]):
        encoder.initialize(X=None if X is None else X[index])
    model.set_dim("nO", model.layers[1].get_dim("nO"))


def side_by_side(n_rows: int) -> Model[Floats2d, Floats2d]:
    """Each n rows in one.

    X (Floats2d): Shape (n * n_rows, width).
    RETURNS (Model[Floats2d, Floats2d]): Output shape (n, n_rows * width).
    """
    return Model("side_by_side", _side_by_side, attrs={"n_rows": n_rows})


def _side_by_side(model: Model, X: Floats2d, is_train: bool) -> Tuple[Floats2d, Callable]:
    n_rows, (n, width) = model.attrs["n_rows"], X.shape
    Y = model.ops.reshape2f(X, n // n_rows, n_rows * width)
    return Y, lambda dY: model.ops.reshape2f(dY, n, width)
