"""A cross-encoder, which reads a conversation and a reply together and scores the pair."""

from typing import Callable, Literal, Optional, Tuple

from thinc.api import Linear, Model, chain
from thinc.types import Floats2d, Ints2d, Ragged

from ..layers.dropout import CheckedDropout
from ..layers.joined_pairs import JoinedPairs
from ..layers.pool import pool
from ..registry import registry

InT = Tuple[Ragged, Ragged, Ints2d]
OutT = Floats2d


@registry.models("thincdialog.CrossEncoder.v1")
def CrossEncoder(
    tokens: Model[Ragged, Ragged],
    pooling: Literal["max", "mean", "max+mean"] = "mean",
    dropout: float = 0.1,
    init_W: Optional[Callable] = None,
) -> Model[InT, OutT]:
    """Read a conversation and a reply as one sequence and score the pair, so that the words of each
    can attend to the words of the other. Each pair costs a forward pass, so use it for few
    replies (``thincdialog.ReRanker.v1``).

    tokens (Model[Ragged, Ragged]): Gives a vector for each token, such as
        ``thincdialog.TransformerTokens.v1``. It needs one segment more than for conversations
        alone, because segment 0 is the reply.
    pooling (str): "max", "mean" or "max+mean" over a pair's tokens.
    dropout (float): Probability of zeroing a value of the pooled vector.
    init_W (Optional[Callable]): Initializer of the linear layer; Glorot uniform if None. With
        ``zero_init.v1``, all scores are zero before training, so a re-ranker starts with the
        ranking of its first model.
    X (Tuple[Ragged, Ragged, Ints2d]): Token ids and segments of conversations and of replies,
        int32; and the pairs, each a row of a conversation and a row of a reply, int32, shape
        (n_pairs, 2).
    RETURNS (Model[Tuple[Ragged, Ragged, Ints2d], Floats2d]): Output shape (n_pairs, 1).
    SOURCE: Humeau et al. 2019, https://arxiv.org/abs/1905.01969
    """
    layers = (
        JoinedPairs(),
        tokens,
        pool(pooling),
        CheckedDropout(dropout),
        Linear(1, init_W=init_W),
    )
    model: Model[InT, OutT] = chain(*layers)
    model.name = "cross_encoder"
    return model
