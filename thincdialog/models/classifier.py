"""A classifier: an encoder and a linear layer with one score per class."""

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
    """Score each class with one linear layer (logits) on top of an encoder.

    The number of classes is inferred from the data.

    encoder (Model): Maps the input to vectors: Ragged -> Floats2d for text, or any Floats2d ->
        Floats2d for features.
    dropout (float): Probability of zeroing a value of the encoder's output.
    X (Any): Input of the encoder.
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
    # Only the head depends on the number of classes. A chain would pass Y to the encoder, too.
    encoder.initialize(X=X)
    head.initialize(X=None if X is None else encoder.predict(X), Y=Y)
    if head.has_dim("nO"):
        model.set_dim("nO", head.get_dim("nO"))
