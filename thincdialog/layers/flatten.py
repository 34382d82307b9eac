"""A layer that turns each example into one row, whatever its shape."""

from math import prod
from typing import Any, Callable, Optional, Tuple

from thinc.api import Model
from thinc.types import Floats2d

from ..registry import registry


@registry.layers("thincdialog.Flatten.v1")
def Flatten() -> Model[Any, Floats2d]:
    """Put the numbers of each example, such as an image or several rows of features, into one row.

    X (FloatsXd): Shape (n_examples, ...), float32; all examples have the same shape.
    RETURNS (Model[FloatsXd, Floats2d]): Output shape (n_examples, nO).
    """
    return Model("flatten", forward, init=init, dims={"nO": None})


def forward(model: Model[Any, Floats2d], X: Any, is_train: bool) -> Tuple[Floats2d, Callable]:
    shape = X.shape
    Y = model.ops.reshape2f(model.ops.as_contig(X), shape[0], prod(shape[1:]))  # (n_examples, nO)

    def backprop(dY: Floats2d) -> Any:
        return model.ops.reshape(dY, shape)

    return Y, backprop


def init(model: Model[Any, Floats2d], X: Optional[Any] = None, Y: Any = None) -> None:
    if X is not None:
        model.set_dim("nO", prod(X.shape[1:]))
