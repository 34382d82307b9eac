"""One score for each conversation and reply, read together."""

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
    """Reads a conversation and a reply as one sequence, so that each word of the one can attend
    to those of the other. Each pair costs a pass: use it for few replies
    (``thincdialog.ReRanker.v1``).

    tokens (Model[Ragged, Ragged]): A vector for each token, such as
        ``thincdialog.TransformerTokens.v1``. Segment 0 is the reply: it takes one segment more
        than for conversations alone.
    pooling (str): "max", "mean" or "max+mean" over a pair's tokens.
    dropout (float): Probability of zeroing a cell of the pooled vector.
    init_W (Optional[Callable]): Initializer of the linear layer, Glorot's uniform if None; with
        ``zero_init.v1`` it says nothing at first of what a first model found.
    X (Tuple[Ragged, Ragged, Ints2d]): Conversations and replies, ids and segments, int32; and
        the pairs, a row of the one and one of the other, int32, shape (n_pairs, 2).
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
