"""Scores for classes."""

from typing import Any, Optional

from thinc.api import Linear, Model, chain
from thinc.initializers import zero_init
from thinc.layers.chain import forward
from thinc.types import Floats2d

from ..layers.dropout import CheckedDropout
from ..registry import registry

InT = Any
OutT = Floats2d


@registry.models("thincdialog.Classifier.v1")
def Classifier(encoder: Model, dropout: float = 0.0) -> Model[InT, OutT]:
    """An encoder, and one linear score (logit) for each class.

    The number of classes is found from the data.

    encoder (Model): Input to vectors: Ragged -> Floats2d for text, or any
        Floats2d -> Floats2d for features.
    dropout (float): Probability of zeroing a cell of the encoder's output.
    X (Any): What the encoder takes.
    RETURNS (Model[Any, Floats2d]): Output shape (n_examples, n_classes), logits.
    """
    head: Model[Floats2d, Floats2d] = chain(CheckedDropout(dropout), Linear(init_W=zero_init))
    return Model(
        "classifier",
        forward,
        init=init,
        layers=[encoder, head],
        dims={"nO": None, "nI": None},
    )


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    encoder, head = model.layers
    # The number of classes is the head's affair: a chain would tell the encoder, too.
    encoder.initialize(X=X)
    head.initialize(X=None if X is None else encoder.predict(X), Y=Y)
    if head.has_dim("nO"):
        model.set_dim("nO", head.get_dim("nO"))
