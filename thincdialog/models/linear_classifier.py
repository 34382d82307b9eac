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
    """One weight for each token and class, and nothing in between: logistic regression
    over (hashed) n-grams. Learns a rare token as readily as a frequent one.

        Y[b] = scale * sum_t W[id_t] / sqrt(n)

    The number of classes is found from the data; the weights take
    n_ids * n_classes * 4 bytes.

    pooling (str): Divide the sum by n ("mean"), by its root ("sqrt"), or not at all ("sum").
    token_dropout (float): Probability of leaving a token out in training.
    scale (float): Factor of the scores at first, above 0 and at most 100: it makes the
        weights learn faster than other parts of a model that share the learning rate.
    X (Ragged): Ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, n_classes), logits.
    """
    weights = BagEmbed(None, pooling=pooling, init_E=zero_init)
    model: Model = chain(drop_tokens(token_dropout), weights, Scale(scale))
    return cast(Model[Ragged, Floats2d], model)
