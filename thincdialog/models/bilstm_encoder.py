"""A recurrent encoder: bidirectional LSTMs over the tokens, then pooling."""

from typing import Callable, List, Literal, Optional, cast

from thinc.api import Linear, Model, chain
from thinc.types import Floats2d, Ragged

from ..layers.bilstm import BiLSTM
from ..layers.dropout import CheckedDropout, drop_tokens
from ..layers.fill_empty import fill_empty
from ..layers.pool import pool
from ..layers.token_embed import TokenEmbed
from ..registry import registry
from .depth import check_depth


@registry.models("thincdialog.BiLSTMEncoder.v1")
def BiLSTMEncoder(
    width: int = 128,
    embed_width: Optional[int] = None,
    depth: int = 1,
    pooling: Literal["max", "mean", "max+mean"] = "max",
    n_segments: int = 2,
    dropout: float = 0.1,
    token_dropout: float = 0.0,
    init_E: Optional[Callable] = None,
) -> Model[Ragged, Floats2d]:
    """Encode each text with embeddings, bidirectional LSTMs, pooling and a linear layer. The
    encoder reads the whole text in order, and is slow for long texts.

    width (int): Width of the LSTMs (both directions together) and of the output; even.
    embed_width (Optional[int]): Width of the embeddings; ``width`` if None.
    depth (int): Number of stacked bidirectional LSTMs, 1 or more.
    pooling (str): "max", "mean" or "max+mean" over the tokens.
    n_segments (int): Number of segments, counted in turns back; the last covers all older turns.
    dropout (float): Probability of zeroing a value of the embeddings, of each LSTM's output and of
        the pooled vector.
    token_dropout (float): Probability of dropping a token in training.
    init_E (Optional[Callable]): Initializer of the embeddings.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, width).
    RAISES (ValueError): If depth is below 1 or above 1,000, or width is odd.
    """
    check_depth(depth, 1)
    layers: List[Model] = [drop_tokens(token_dropout)] if token_dropout else []
    nE = embed_width or width
    layers += [fill_empty(), TokenEmbed(nE, n_segments=n_segments, init_E=init_E)]
    layers.append(CheckedDropout(dropout))
    for index in range(depth):
        layers += [BiLSTM(width, nE if index == 0 else width), CheckedDropout(dropout)]
    layers += [pool(pooling), Linear(width)]
    return cast(Model[Ragged, Floats2d], chain(*layers))
