"""Vectors of tokens, such as a transformer's, then pooling."""

from typing import Callable, Literal, Optional, cast

from thinc.api import Linear, Model, chain
from thinc.types import Floats2d, Ragged

from ..layers.dropout import CheckedDropout
from ..layers.pool import pool
from ..registry import registry


@registry.models("thincdialog.TransformerEncoder.v1")
def TransformerEncoder(
    tokens: Model[Ragged, Ragged],
    width: Optional[int] = None,
    pooling: Literal["max", "mean", "max+mean"] = "mean",
    dropout: float = 0.1,
    init_W: Optional[Callable] = None,
) -> Model[Ragged, Floats2d]:
    """A vector for each token, pooling, and a linear layer.

    tokens (Model[Ragged, Ragged]): A vector for each token, such as
        ``thincdialog.TransformerTokens.v1``.
    width (Optional[int]): Width of the output; that of a token's vector if None.
    pooling (str): "max", "mean" or "max+mean" over the tokens.
    dropout (float): Probability of zeroing a cell of the pooled vector.
    init_W (Optional[Callable]): Initializer of the linear layer, Glorot's uniform if None; with
        ``zero_init.v1`` it adds nothing at first to an encoder with which it is summed.
    X (Ragged): Ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, width).
    RAISES (ValueError): If width is None and tokens does not tell its own.
    """
    width = width or tokens.maybe_get_dim("nO")
    if width is None:
        raise ValueError(f"'{tokens.name}' does not say how wide its vectors are: give a width")
    layers = (tokens, pool(pooling), CheckedDropout(dropout), Linear(width, init_W=init_W))
    return cast(Model[Ragged, Floats2d], chain(*layers))
