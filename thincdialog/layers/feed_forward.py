"""A feed-forward net with a residual connection."""

from typing import Optional

from thinc.api import Linear, Model, Relu, chain, residual
from thinc.types import Floats2d

from ..registry import registry
from .dropout import CheckedDropout
from .normalise import LayerNorm


@registry.layers("thincdialog.ResidualFeedForward.v1")
def ResidualFeedForward(
    nO: int, nH: Optional[int] = None, *, dropout: float = 0.0
) -> Model[Floats2d, Floats2d]:
    """Add the output of a net with one hidden layer to its input, and apply layer normalisation.

        Y = layer_norm(X + dropout(W2 relu(W1 X + b1) + b2))

    nO (int): Width of input and output.
    nH (Optional[int]): Width of the hidden layer; 2 * nO if None.
    dropout (float): Probability of zeroing a value of the net's output, at least 0.0 and below 1.0.
    X (Floats2d): Shape (nB, nO), float32.
    RETURNS (Model[Floats2d, Floats2d]): Output shape (nB, nO).
    """
    net = chain(Relu(nH or 2 * nO, nO), Linear(nO, nH or 2 * nO), CheckedDropout(dropout))
    return chain(residual(net), LayerNorm(nO))
