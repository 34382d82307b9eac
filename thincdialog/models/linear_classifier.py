"""Logistic regression over tokens."""

from typing import Literal, cast

from thinc.api import Model, chain
from thinc.initializers import zero_init
from thinc.types import Floats2d, Ragged

from ..layers.bag_embed import BagEmbed
from ..layers.dropout import drop_tokens
from ..layers.scale import Scale
from ..registry import registry


@registry.models("thincdialog.LinearClassifier.v1")
def LinearClassifier(
    pooling: Literal["mean", "sum", "sqrt"] = "sqrt", token_dropout: float = 0.3, scale: float = 5.0
) -> Model[Ragged, Floats2d]:
    """Build a logistic regression over (hashed) n-grams, with one weight per token and class. It
    learns from rare tokens as easily as from frequent ones.

        Y[b] = scale * sum_t W[id_t] / sqrt(n)

    The number of classes is inferred from the data. The weights take n_ids * n_classes * 4 bytes.

    pooling (str): Divide the sum by n ("mean"), by its square root ("sqrt"), or not at all
        ("sum").
    token_dropout (float): Probability of dropping a token in training.
    scale (float): Initial factor of the scores, above 0 and at most 100. A larger factor makes
        these weights learn faster than other parts of a model with the same learning rate.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, n_classes), logits.
    """
    weights = BagEmbed(None, pooling=pooling, init_E=zero_init)
    model: Model = chain(drop_tokens(token_dropout), weights, Scale(scale))
    return cast(Model[Ragged, Floats2d], model)
