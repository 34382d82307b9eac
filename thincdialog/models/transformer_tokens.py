"""A transformer that gives a vector for each token."""

from typing import Callable, List, Literal, Optional

from thinc.api import Model, chain, with_array
from thinc.types import Ragged

from ..layers.dropout import CheckedDropout, drop_tokens
from ..layers.fill_empty import fill_empty
from ..layers.learned_positions import LearnedPositions
from ..layers.normalise import LayerNorm
from ..layers.token_embed import TokenEmbed
from ..layers.transformer_block import Activation, TransformerBlock
from ..registry import registry
from .depth import check_depth

Places = Literal["rotary", "learned", "none"]


@registry.models("thincdialog.TransformerTokens.v1")
def TransformerTokens(
    width: int = 128,
    depth: int = 4,
    n_heads: int = 4,
    hidden: Optional[int] = None,
    positions: Places = "rotary",
    n_places: int = 256,
    activation: Activation = "gelu",
    n_segments: int = 2,
    dropout: float = 0.1,
    token_dropout: float = 0.0,
    init_E: Optional[Callable] = None,
) -> Model[Ragged, Ragged]:
    """Embed tokens, then apply transformer blocks and layer normalisation. There is no padding:
    each token attends to the tokens of its own conversation, which lie one after another.

    width (int): Width of embeddings, blocks and output.
    depth (int): Number of blocks, 0 to 1,000.
    n_heads (int): Number of attention heads per block, which share the width.
    hidden (Optional[int]): Width of the hidden layer of each block's net. If None, 4 * width. With
        "swiglu", 8 * width / 3, rounded up to a multiple of 8, which gives about the same number of
        weights.
    positions (str): How blocks see the position of a token: "rotary" (relative distances),
        "learned" (a vector for each position) or "none".
    n_places (int): Number of learned positions; later tokens share the last one.
    activation (str): Activation of the hidden layers: "gelu", "relu" or "swiglu" (one half of the
        layer gates the other half).
    n_segments (int): Number of segments, counted in turns back; the last covers all older turns.
    dropout (float): Probability of zeroing a value of the embeddings and of each block's additions.
    token_dropout (float): Probability of dropping a token in training.
    init_E (Optional[Callable]): Initializer of the embeddings.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): Output shape (n_tokens, width).
    RAISES (ValueError): If depth is below 0 or above 1,000, or width is not a multiple of n_heads.
    SOURCE: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762
    """
    check_depth(depth, 0)
    layers: List[Model] = [drop_tokens(token_dropout)] if token_dropout else []
    layers += [fill_empty(), TokenEmbed(width, n_segments=n_segments, init_E=init_E)]
    if positions == "learned":
        layers.append(LearnedPositions(width, n_places))
    layers.append(CheckedDropout(dropout))
    layers += [
        TransformerBlock(
            width,
            n_heads=n_heads,
            nH=hidden,
            activation=activation,
            positions="rotary" if positions == "rotary" else "none",
            dropout=dropout,
        )
        for _ in range(depth)
    ]
    layers.append(with_array(LayerNorm(width)))
    return chain(*layers)
