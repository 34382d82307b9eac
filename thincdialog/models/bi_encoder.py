"""Two encoders whose outputs are compared by their dot product."""

from typing import Any, Callable, Dict, List, Literal, Optional, Tuple

from thinc.api import Model, chain
from thinc.types import Floats2d, Ragged

from ..layers.normalise import L2Normalise
from ..layers.scale import Scale
from ..registry import registry

InT = Tuple[Ragged, Ragged]
OutT = Floats2d
ENCODERS = ("context_encoder", "candidate_encoder")


@registry.models("thincdialog.BiEncoder.v1")
def BiEncoder(
    encoder: Model,
    candidate_encoder: Optional[Model] = None,
    share: Literal["all", "embeddings", "nothing"] = "embeddings",
    normalise: bool = True,
    scale: float = 10.0,
) -> Model[InT, OutT]:
    """Encode conversations and candidate replies separately, and score each pair by the dot product
    of their vectors.

    The two encoders are separate nodes, ``model.get_ref("context_encoder")`` and
    ``"candidate_encoder"`` (Ragged -> Floats2d), so that candidates can be encoded once and reused.

    encoder (Model): Encoder of conversations: any Model[Ragged, Floats2d].
    candidate_encoder (Optional[Model]): Encoder of replies; if None, a copy of ``encoder``.
    share (str): Weights that the encoders share: "all" (one encoder for both), "embeddings"
        (their embedding tables, the nodes with a dimension "nV"), or "nothing".
    normalise (bool): Scale the vectors to length 1, so that scores are cosines, and multiply
        the scores by a learned factor.
    scale (float): Initial value of that factor, above 0 and at most 100. The factor never grows
        beyond 100.
    X (Tuple[Ragged, Ragged]): Conversations and candidates: token ids and segments, int32.
    RETURNS (Model[Tuple[Ragged, Ragged], Floats2d]): Output shape (n_examples,
        n_candidates).
    RAISES (ValueError): If ``share`` is "all" and a candidate encoder is given, or if the
        embedding tables of the two encoders cannot be matched.
    """
    if share == "all":
        if candidate_encoder is not None:
            raise ValueError("share = 'all', so candidate_encoder must be left out")
        candidate_encoder = encoder
    elif candidate_encoder is None:
        if any(node.ref_names for node in encoder.walk()):
            raise ValueError(
                f"encoder '{encoder.name}' has references to its nodes, which a copy would "
                "lose: give a candidate_encoder, or share = 'all'"
            )
        candidate_encoder = encoder.copy()
    if share == "embeddings":
        candidate_encoder = tie_embeddings(encoder, candidate_encoder)
    contexts, candidates = encoder, candidate_encoder
    if normalise:
        contexts = chain(encoder, L2Normalise(), Scale(scale))
        candidates = chain(candidate_encoder, L2Normalise())
    return Model(
        "bi_encoder",
        forward,
        init=init,
        layers=[contexts] if contexts is candidates else [contexts, candidates],
        refs=dict(zip(ENCODERS, (contexts, candidates))),
        dims={"nO": None},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    gemm = model.ops.gemm
    encode_contexts, encode_candidates = map(model.get_ref, ENCODERS)
    contexts, backprop_contexts = encode_contexts(X[0], is_train)  # (n_examples, width)
    candidates, backprop_candidates = encode_candidates(X[1], is_train)  # (n_candidates, width)
    scores = gemm(contexts, candidates, trans2=True)  # (n_examples, n_candidates)

    def backprop(d_scores: OutT) -> InT:
        d_contexts = gemm(d_scores, candidates)  # (n_examples, width)
        d_candidates = gemm(d_scores, contexts, trans1=True)  # (n_candidates, width)
        return backprop_contexts(d_contexts), backprop_candidates(d_candidates)

    return scores, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[Any] = None) -> None:
    for index, encoder in enumerate(map(model.get_ref, ENCODERS)):
        encoder.initialize(X=None if X is None else X[index])
        if encoder.has_dim("nO"):
            model.set_dim("nO", encoder.get_dim("nO"))


def _tables(encoder: Model) -> List[Model]:
    return [node for node in encoder.walk() if node.has_dim("nV") is not False]


def _settings(table: Model) -> Dict[str, Any]:
    """Return the settings that a table must share with the table that replaces it."""
    attrs = {key: value for key, value in table.attrs.items() if key != "touched_rows"}
    dims = {name: table.maybe_get_dim(name) for name in table.dim_names}
    return {"name": table.name, **dims, **attrs}


def tie_embeddings(encoder: Model, other: Model) -> Model:
    """Replace the second encoder's embedding nodes by the first encoder's, and return the second.

    RAISES (ValueError): If the tables of the two encoders cannot be matched.
    """
    ours, theirs = _tables(encoder), _tables(other)
    if len(ours) != len(theirs):
        raise ValueError(
            f"share = 'embeddings', but encoder has {len(ours)} embedding tables and "
            f"candidate_encoder {len(theirs)}. Use share = 'nothing', or the same tables in both."
        )
    for mine, own in zip(ours, theirs):
        one, two = _settings(mine), _settings(own)
        if one != two:
            raise ValueError(
                f"share = 'embeddings', but the tables have different settings: {mine.name} {one} "
                f"and {own.name} {two}. Use share = 'nothing', or the same tables in both."
            )
        if own is other:
            other = mine
        else:
            other.replace_node(own, mine)
    return other
