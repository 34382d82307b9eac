"""A bag-of-embeddings encoder followed by a small net."""

from typing import Callable, List, Literal, Optional, cast

from thinc.api import Linear, Model, chain
from thinc.initializers import glorot_uniform_init
from thinc.types import Floats2d, Ragged

from ..layers.bag_embed import BagEmbed
from ..layers.dropout import CheckedDropout, drop_tokens
from ..layers.feed_forward import ResidualFeedForward
from ..registry import registry
from .depth import check_depth


@registry.models("thincdialog.BagEncoder.v1")
def BagEncoder(
    width: int = 256,
    embed_width: Optional[int] = None,
    depth: int = 0,
    pooling: Literal["mean", "sum", "sqrt"] = "mean",
    segments: Literal["merge", "weight", "separate"] = "separate",
    n_segments: int = 2,
    dropout: float = 0.0,
    token_dropout: float = 0.0,
    init_E: Optional[Callable] = None,
    init_W: Optional[Callable] = None,
) -> Model[Ragged, Floats2d]:
    """Encode each text as pooled embeddings, then apply a linear layer and residual nets. This is
    the fastest encoder. It ignores word order, unless the tokenizer makes n-grams.

    width (int): Width of the output.
    embed_width (Optional[int]): Width of an embedding; ``width`` if None.
    depth (int): Number of residual feed-forward nets after the linear layer, 0 or more.
    pooling (str): "mean", "sum" or "sqrt": see ``thincdialog.BagEmbed.v1``.
    segments (str): "separate" keeps the vectors of the current turn and the history apart,
        "weight" adds them with learned weights, "merge" does not distinguish turns.
    n_segments (int): Number of segments, counted in turns back; the last covers all older turns.
    dropout (float): Probability of zeroing a value of the pooled embedding and of each net's
        output.
    token_dropout (float): Probability of dropping a token in training.
    init_E (Optional[Callable]): Initializer of the embeddings.
    init_W (Optional[Callable]): Initializer of the linear layer. With
        ``thincdialog.identity_init.v1``, an untrained ranker scores by the words in common.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, width).
    RAISES (ValueError): If depth is below 0 or above 1,000.
    """
    check_depth(depth, 0)
    pooled_width = (embed_width or width) * (n_segments if segments == "separate" else 1)
    embed = BagEmbed(
        pooled_width, pooling=pooling, segments=segments, n_segments=n_segments, init_E=init_E
    )
    linear = Linear(width, pooled_width, init_W=init_W or glorot_uniform_init)
    layers: List[Model] = [embed, CheckedDropout(dropout), linear]
    layers.extend(ResidualFeedForward(width, dropout=dropout) for _ in range(depth))
    if token_dropout:
        layers.insert(0, drop_tokens(token_dropout))
    return cast(Model[Ragged, Floats2d], chain(*layers))
