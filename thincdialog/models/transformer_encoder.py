"""An encoder that pools the vectors of tokens, such as a transformer's."""

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
    """Encode each text as the pooled vectors of its tokens, followed by a linear layer.

    tokens (Model[Ragged, Ragged]): Gives a vector for each token, such as
        ``thincdialog.TransformerTokens.v1``.
    width (Optional[int]): Width of the output; that of a token's vector if None.
    pooling (str): "max", "mean" or "max+mean" over the tokens.
    dropout (float): Probability of zeroing a value of the pooled vector.
    init_W (Optional[Callable]): Initializer of the linear layer; Glorot uniform if None. With
        ``zero_init.v1``, the output is zero before training, so it adds nothing to an encoder with
        which it is summed.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, width).
    RAISES (ValueError): If width is None and ``tokens`` does not define its output width.
    """
    width = width or tokens.maybe_get_dim("nO")
    if width is None:
        raise ValueError(f"'{tokens.name}' does not say how wide its vectors are: give a width")
    layers = (tokens, pool(pooling), CheckedDropout(dropout), Linear(width, init_W=init_W))
    return cast(Model[Ragged, Floats2d], chain(*layers))
