"""Two tables of embeddings whose sums are compared."""

from typing import Callable, List, Literal, Optional, Tuple

from thinc.api import Model, chain
from thinc.types import Floats2d, Ragged

from ..layers.bag_embed import BagEmbed
from ..layers.l2_normalise import L2Normalise
from ..layers.times import times
from ..registry import registry
from .bi_encoder import BiEncoder

InT = Tuple[Ragged, Ragged]
OutT = Tuple[Floats2d, Floats2d]


@registry.models("thincdialog.StarSpace.v1")
def StarSpace(
    width: int = 128,
    share: bool = False,
    pooling: Literal["mean", "sum", "sqrt"] = "sqrt",
    similarity: Literal["cosine", "dot"] = "cosine",
    scale: float = 1.0,
    init_E: Optional[Callable] = None,
) -> Model[InT, OutT]:
    """Conversations and replies are sums of the embeddings of their tokens; the score of a
    pair is their cosine or dot product. For the agent ``thincdialog.StarSpace.v1``, which
    trains it in one compiled kernel; ``thincdialog.Ranker.v1`` can train it, too.

    width (int): Width of an embedding; a multiple of 16 keeps rows apart in memory, so
        that several workers do not write to the same cache line.
    share (bool): Whether conversations and replies have one table or each its own.
    pooling (str): Divide the sum of n embeddings by n ("mean"), by its root ("sqrt"),
        or not at all ("sum"). Makes no difference to cosines.
    similarity (str): "cosine" or "dot".
    scale (float): Factor of the score, above 0; softmax of cosines wants about 10.
    init_E (Optional[Callable]): Initializer of the tables; uniform in +-0.1 if None.
    X (Tuple[Ragged, Ragged]): Conversations and candidates: ids and segments, int32;
        segments are not told apart.
    RETURNS (Model[Tuple[Ragged, Ragged], Tuple[Floats2d, Floats2d]]): Output shapes
        (n_examples, width) and (n_candidates, width).
    RAISES (ValueError): If width is below 1 or scale not above 0.
    SOURCE: Wu et al. 2017, https://arxiv.org/abs/1709.03856
    """
    if width < 1:
        raise ValueError(f"width = {width}, but it must be 1 or more")
    if scale <= 0:
        raise ValueError(f"scale = {scale}, but it must be above 0")
    tables = [BagEmbed(width, pooling=pooling, init_E=init_E) for _ in range(2)]
    if share:
        tables[1] = tables[0]
    unit: List[Model] = [L2Normalise()] if similarity == "cosine" else []
    contexts: Model = chain(tables[0], *unit, times(scale))
    unit = [L2Normalise()] if similarity == "cosine" else []
    candidates: Model = chain(tables[1], *unit) if unit else tables[1]
    model = BiEncoder(contexts, candidates, share="nothing", normalise=False)
    model.name = "star_space"
    model.set_ref("context_table", tables[0])
    model.set_ref("label_table", tables[1])
    model.attrs.update({"pooling": pooling, "similarity": similarity, "scale": scale})
    return model
