"""A transformer over the tokens, then pooling."""

from typing import Callable, Literal, Optional, cast

from thinc.api import Linear, Model, chain
from thinc.types import Floats2d, Ragged

from ..layers.dropout import CheckedDropout
from ..layers.pool import pool
from ..layers.transformer_block import Activation
from ..registry import registry
from .transformer_tokens import Places, TransformerTokens


@registry.models("thincdialog.TransformerEncoder.v1")
def TransformerEncoder(
    width: int = 128,
    depth: int = 4,
    n_heads: int = 4,
    hidden: Optional[int] = None,
    positions: Places = "rotary",
    n_places: int = 256,
    activation: Activation = "gelu",
    pooling: Literal["max", "mean", "max+mean"] = "mean",
    n_segments: int = 2,
    dropout: float = 0.1,
    token_dropout: float = 0.0,
    init_E: Optional[Callable] = None,
) -> Model[Ragged, Floats2d]:
    """A transformer (``TransformerTokens``), pooling, and a linear layer.

    width (int): Width of embeddings, blocks and output.
    depth (int): Blocks, 0 or more.
    n_heads (int): Heads of each block's attention, which share the width.
    hidden (Optional[int]): Width of the hidden layer of each block's net; 4 * width if None.
    positions (str): How blocks learn of a token's place: "rotary" (as distances), "learned"
        (a vector for each place) or "none".
    n_places (int): Places told apart where they are learned; later ones share the last.
    activation (str): Of the hidden layers: "gelu" or "relu".
    pooling (str): "max", "mean" or "max+mean" over the tokens.
    n_segments (int): Segments told apart, the last stands for all older turns.
    dropout (float): Probability of zeroing a cell of the embeddings, of what each block adds
        and of the pooled vector.
    token_dropout (float): Probability of leaving a token out in training.
    init_E (Optional[Callable]): Initializer of the embeddings.
    X (Ragged): Ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, width).
    RAISES (ValueError): If depth is below 0, or width is no multiple of n_heads.
    """
    tokens = TransformerTokens(
        width=width,
        depth=depth,
        n_heads=n_heads,
        hidden=hidden,
        positions=positions,
        n_places=n_places,
        activation=activation,
        n_segments=n_segments,
        dropout=dropout,
        token_dropout=token_dropout,
        init_E=init_E,
    )
    layers = (tokens, pool(pooling), CheckedDropout(dropout), Linear(width))
    return cast(Model[Ragged, Floats2d], chain(*layers))
