"""A StarSpace model: two tables of embeddings whose sums are compared."""

from typing import Any, Callable, Dict, Literal, Optional, Tuple

from thinc.api import Model, chain, noop
from thinc.types import Floats2d, Ragged

from ..layers.bag_embed import BagEmbed
from ..layers.normalise import L2Normalise
from ..layers.scale import times
from ..registry import registry
from .bi_encoder import BiEncoder
from .bi_encoder import init as init_encoders

InT = Tuple[Ragged, Ragged]
OutT = Floats2d


@registry.models("thincdialog.StarSpace.v1")
def StarSpace(
    width: int = 128,
    share: Literal["all", "start", "nothing"] = "start",
    n_segments: int = 1,
    pooling: Literal["mean", "sum", "sqrt"] = "sqrt",
    similarity: Literal["cosine", "dot"] = "cosine",
    scale: float = 1.0,
    init_E: Optional[Callable] = None,
) -> Model[InT, OutT]:
    """Sum the embeddings of the tokens of conversations and of replies, and score each pair by
    cosine or dot product. The agent ``thincdialog.StarSpace.v1`` trains this model in one compiled
    kernel; ``thincdialog.Ranker.v1`` can train it, too.

    width (int): Width of an embedding. With a multiple of 16, rows share no cache line, so
        several workers do not write to the same one.
    share (str): Weights that conversations and replies share: "all" (one table), "start" (two
        tables with the same initial values, so that an untrained model scores by the words in
        common), or "nothing".
    n_segments (int): Number of segments of a conversation, counted in turns back; the last covers
        all older turns. Each word has an embedding per segment. Must be 1 with share = "all".
    pooling (str): Divide the sum of n embeddings by n ("mean"), by its square root ("sqrt"),
        or not at all ("sum"). Cosines do not depend on it.
    similarity (str): "cosine" or "dot".
    scale (float): Factor of the score, above 0. The softmax loss of cosines needs about 10.
    init_E (Optional[Callable]): Initializer of the tables; uniform in +-0.1 if None.
    X (Tuple[Ragged, Ragged]): Conversations and candidates: token ids and segments, int32;
        the segments of candidates are ignored.
    RETURNS (Model[Tuple[Ragged, Ragged], Floats2d]): Output shape (n_examples,
        n_candidates).
    RAISES (ValueError): If width or n_segments is below 1, scale is not above 0, or n_segments is
        above 1 with share = "all".
    SOURCE: Wu et al. 2017, https://arxiv.org/abs/1709.03856
    """
    for name, n in (("width", width), ("n_segments", n_segments)):
        if n < 1:
            raise ValueError(f"{name} = {n}, but it must be 1 or more")
    if scale <= 0:
        raise ValueError(f"scale = {scale}, but it must be above 0")
    if n_segments > 1 and share == "all":
        raise ValueError(f"n_segments = {n_segments}, but share = 'all' has one table: set it to 1")
    both: Dict[str, Any] = {"pooling": pooling, "init_E": init_E}
    contexts = BagEmbed(width, segments="tables", n_segments=n_segments, **both)
    labels = contexts if share == "all" else BagEmbed(width, **both)
    unit = L2Normalise if similarity == "cosine" else noop
    model = BiEncoder(
        chain(contexts, unit(), times(scale)),
        chain(labels, unit()),
        share="nothing",
        normalise=False,
    )
    model.name = "star_space"
    model.init = init
    model.set_ref("context_table", contexts)
    model.set_ref("label_table", labels)
    model.attrs.update(pooling=pooling, similarity=similarity, scale=scale, share=share)
    return model


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[Any] = None) -> None:
    init_encoders(model, X, Y)
    if model.attrs["share"] == "start":
        contexts, labels = map(model.get_ref, ("context_table", "label_table"))
        labels.set_param("E", contexts.get_param("E")[:: contexts.get_dim("nS")].copy())
