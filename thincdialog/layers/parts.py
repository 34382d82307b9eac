"""A layer for inputs of several parts, each with its own layer."""

from typing import Any, Callable, Optional, Tuple

import numpy
from thinc.api import Model
from thinc.types import Floats2d

from ..errors import ConfigError, Problem
from ..registry import registry

InT = Tuple[Any, ...]
OutT = Floats2d


@registry.layers("thincdialog.Parts.v1")
def Parts(*layers: Model) -> Model[InT, OutT]:
    """Apply each layer to its part of the input, the first layer to the first part and so on, and
    put the outputs side by side. Use it for inputs that a collate function combines, such as a
    text and an image.

    layers (Model): One for each part: any input to Floats2d; as `[x.*.name]` in a config.
    X (Tuple[Any, ...]): One part for each layer, all with one row for each example.
    RETURNS (Model[Tuple[Any, ...], Floats2d]): Output shape (n_examples, sum of the widths).
    RAISES (ConfigError): If the number of parts differs from the number of layers.
    """
    return Model("parts", forward, init=init, layers=list(layers), dims={"nO": None})


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    _check(model, X)
    outputs, backprops = zip(*(layer(part, is_train) for layer, part in zip(model.layers, X)))
    Y = model.ops.xp.concatenate(outputs, axis=1)  # (n_examples, nO)
    ends = numpy.cumsum([output.shape[1] for output in outputs]).tolist()

    def backprop(dY: OutT) -> InT:
        parts = model.ops.xp.split(dY, ends[:-1], axis=1)  # (n_examples, width) each
        parts = map(model.ops.as_contig, parts)
        return tuple(backprop_part(part) for backprop_part, part in zip(backprops, parts))

    return Y, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    if X is not None:
        _check(model, X)
    for number, layer in enumerate(model.layers):
        layer.initialize(X=None if X is None else X[number])
    if all(layer.has_dim("nO") for layer in model.layers):
        model.set_dim("nO", sum(layer.get_dim("nO") for layer in model.layers))


def _check(model: Model[InT, OutT], X: InT) -> None:
    n_parts = len(X) if isinstance(X, tuple) else 1
    if n_parts != len(model.layers):
        text = f"[agent.model] has {len(model.layers)} parallel layers for {n_parts} input parts"
        hint = "let the collate function return a tuple with one part for each layer"
        raise ConfigError([Problem("", text, hint)])
