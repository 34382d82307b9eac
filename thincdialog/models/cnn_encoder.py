"""A convolutional encoder: windows over the tokens, then pooling."""

from typing import Callable, List, Literal, Optional, cast

from thinc.api import Linear, Model, chain
from thinc.types import Floats2d, Ragged

from ..layers.dropout import CheckedDropout, drop_tokens
from ..layers.fill_empty import fill_empty
from ..layers.pool import pool
from ..layers.token_embed import TokenEmbed
from ..layers.window_block import WindowBlock
from ..registry import registry
from .depth import check_depth


@registry.models("thincdialog.CNNEncoder.v1")
def CNNEncoder(
    width: int = 128,
    depth: int = 2,
    window_size: int = 1,
    n_pieces: int = 3,
    pooling: Literal["max", "mean", "max+mean"] = "max",
    n_segments: int = 2,
    dropout: float = 0.1,
    token_dropout: float = 0.0,
    init_E: Optional[Callable] = None,
) -> Model[Ragged, Floats2d]:
    """Encode each text with embeddings, window blocks, pooling and a linear layer. Each token sees
    a phrase of 2 * depth * window_size + 1 tokens.

    width (int): Width of embeddings, blocks and output.
    depth (int): Number of window blocks, 0 or more.
    window_size (int): Neighbours on each side that a block sees, 1 or more.
    n_pieces (int): Pieces of the blocks' maxout, 1 or more.
    pooling (str): "max", "mean" or "max+mean" over the tokens.
    n_segments (int): Number of segments, counted in turns back; the last covers all older turns.
    dropout (float): Probability of zeroing a value of the embeddings, of each block's net and of
        the pooled vector.
    token_dropout (float): Probability of dropping a token in training.
    init_E (Optional[Callable]): Initializer of the embeddings.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, width).
    RAISES (ValueError): If depth is below 0 or above 1,000.
    """
    check_depth(depth, 0)
    layers: List[Model] = [drop_tokens(token_dropout)] if token_dropout else []
    layers += [fill_empty(), TokenEmbed(width, n_segments=n_segments, init_E=init_E)]
    layers.append(CheckedDropout(dropout))
    window = {"window_size": window_size, "n_pieces": n_pieces}
    layers += [WindowBlock(width, dropout=dropout, **window) for _ in range(depth)]
    layers += [pool(pooling), CheckedDropout(dropout), Linear(width)]
    return cast(Model[Ragged, Floats2d], chain(*layers))
