"""A poly-encoder: several vectors for each conversation, one for each candidate."""

from typing import Any, Callable, Literal, Optional, Tuple

from thinc.api import Linear, Model, chain
from thinc.initializers import zero_init
from thinc.types import Floats2d, Ragged

from ..layers.code_attention import CodeAttention
from ..layers.code_scores import CodeScores
from ..layers.normalise import L2Normalise
from ..layers.pool import pool
from ..layers.scale import Scale
from ..ops.devices import no_gradient
from ..registry import registry
from .bi_encoder import ENCODERS, tie_embeddings

InT = Tuple[Ragged, Ragged]
OutT = Floats2d
SCORER = "scorer"


@registry.models("thincdialog.PolyEncoder.v1")
def PolyEncoder(
    tokens: Model[Ragged, Ragged],
    candidate_tokens: Optional[Model[Ragged, Ragged]] = None,
    n_codes: int = 16,
    share: Literal["all", "embeddings", "nothing"] = "all",
    pooling: Literal["max", "mean"] = "mean",
    scale: float = 10.0,
    added_encoder: Optional[Model[Ragged, Floats2d]] = None,
) -> Model[InT, OutT]:
    """Encode each conversation as one vector per learned code, and each candidate reply as one
    vector, with which the reply attends to the conversation's vectors. As with ``BiEncoder``,
    candidates can be encoded once and reused.

    Its parts are ``model.get_ref("context_encoder")`` (Ragged to Floats2d, the vectors of a
    conversation side by side), ``"candidate_encoder"`` (Ragged to Floats2d) and ``"scorer"``.

    tokens (Model[Ragged, Ragged]): Gives a vector for each token of a conversation, such as
        ``thincdialog.TransformerTokens.v1``.
    candidate_tokens (Optional[Model[Ragged, Ragged]]): Gives a vector for each token of a reply; if
        None, ``tokens`` or a copy of it.
    n_codes (int): Number of vectors per conversation, 1 or more.
    share (str): Weights that conversations and replies share: "all" (``tokens``, for both),
        "embeddings" (their embedding tables, the nodes with a dimension "nV"), or "nothing".
    pooling (str): "max" or "mean" over a reply's tokens.
    scale (float): Initial factor of the cosines, above 0 and at most 100.
    added_encoder (Optional[Model[Ragged, Floats2d]]): An encoder whose vector is added to each of
        a conversation's vectors. A copy with the same embedding tables does the same for replies.
        Before training, scores depend on this encoder alone, so the codes learn what it misses.
    X (Tuple[Ragged, Ragged]): Conversations and candidates: token ids and segments, int32.
    RETURNS (Model[Tuple[Ragged, Ragged], Floats2d]): Output shape (n_examples,
        n_candidates).
    RAISES (ValueError): If ``share`` is "all" and candidate_tokens is given, or if the embedding
        tables cannot be matched.
    SOURCE: Humeau et al. 2019, https://arxiv.org/abs/1905.01969
    """
    if share == "all" and candidate_tokens is not None:
        raise ValueError("share = 'all', so candidate_tokens must be left out")
    of_replies = tokens if share == "all" else candidate_tokens or tokens.copy()
    if share == "embeddings":
        of_replies = tie_embeddings(tokens, of_replies)
    found: Model = chain(tokens, CodeAttention(n_codes))
    said: Model = chain(of_replies, pool(pooling))
    if added_encoder is not None:
        of_added = tie_embeddings(added_encoder, added_encoder.copy())
        found = _with_vector(found, added_encoder)
        said = _with_vector(said, of_added)
    contexts: Model = chain(found, L2Normalise(), Scale(scale), side_by_side(n_codes))
    candidates: Model = chain(said, L2Normalise())
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
    encode_contexts, encode_candidates, score = model.layers
    contexts, backprop_contexts = encode_contexts(X[0], is_train)  # (n_examples, n_codes * width)
    candidates, backprop_candidates = encode_candidates(X[1], is_train)  # (n_candidates, width)
    scores, backprop_scores = score((contexts, candidates), is_train)  # (n_examples, n_candidates)

    def backprop(d_scores: OutT) -> InT:
        d_contexts, d_candidates = backprop_scores(d_scores)
        return backprop_contexts(d_contexts), backprop_candidates(d_candidates)

    return scores, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[Any] = None) -> None:
    for index, encoder in enumerate(model.layers[:2]):
        encoder.initialize(X=None if X is None else X[index])
    model.set_dim("nO", model.layers[1].get_dim("nO"))


def _with_vector(rows: Model, added_encoder: Model[Ragged, Floats2d]) -> Model[Ragged, Floats2d]:
    """Put the rows of each text through a linear layer that is zero at first, and add the vector of
    another encoder to each row."""
    linear: Model = Linear(added_encoder.get_dim("nO"), init_W=zero_init)
    return Model(
        "with_vector",
        _forward_with_vector,
        init=_init_with_vector,
        layers=[chain(rows, linear), added_encoder],
    )


def _forward_with_vector(model: Model, X: Ragged, is_train: bool) -> Tuple[Floats2d, Callable]:
    ops, (of_rows, added_encoder) = model.ops, model.layers
    rows, backprop_rows = of_rows(X, is_train)  # (n * n_rows, width)
    vectors, backprop_vectors = added_encoder(X, is_train)  # (n, width)
    shape = (vectors.shape[0], -1, vectors.shape[1])
    Y: Any = ops.reshape(rows, shape) + vectors[:, None]

    def backprop(dY: Floats2d) -> Ragged:
        backprop_rows(dY)
        backprop_vectors(ops.reshape(dY, shape).sum(axis=1))
        return no_gradient(X)

    return ops.reshape(Y, rows.shape), backprop


def _init_with_vector(model: Model, X: Optional[Ragged] = None, Y: Any = None) -> None:
    for each in model.layers:
        each.initialize(X=X)


def side_by_side(n_rows: int) -> Model[Floats2d, Floats2d]:
    """Join each ``n_rows`` consecutive rows into one row.

    X (Floats2d): Shape (n * n_rows, width).
    RETURNS (Model[Floats2d, Floats2d]): Output shape (n, n_rows * width).
    """
    return Model("side_by_side", _side_by_side, attrs={"n_rows": n_rows})


def _side_by_side(model: Model, X: Floats2d, is_train: bool) -> Tuple[Floats2d, Callable]:
    n_rows, (n, width) = model.attrs["n_rows"], X.shape
    Y = model.ops.reshape2f(X, n // n_rows, n_rows * width)
    return Y, lambda dY: model.ops.reshape2f(dY, n, width)
