"""A layer for inputs of several parts, each with its own layer."""

from functools import reduce
from operator import add
from typing import Any, Callable, Optional, Sequence, Tuple

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
    return join_outputs(model, X, is_train)


def join_outputs(
    model: Model, inputs: Sequence[Any], is_train: bool, *, is_sum: bool = False
) -> Tuple[OutT, Callable[[OutT], InT]]:
    """Apply each layer of a model to its own input, and join the outputs.

    inputs (Sequence[Any]): One for each layer.
    is_sum (bool): Add the outputs, instead of putting them side by side.
    RETURNS (Tuple[Floats2d, Callable]): Y, shape (n_examples, nO); and the function that maps the
        gradient of Y to those of the inputs.
    """
    ops: Any = model.ops
    # (n_examples, nO of the layer)
    outputs, backprops = zip(*(layer(X, is_train) for layer, X in zip(model.layers, inputs)))
    ends = numpy.cumsum([output.shape[1] for output in outputs]).tolist()

    def backprop(dY: OutT) -> InT:
        parts = [dY] * len(ends) if is_sum else ops.xp.split(dY, ends[:-1], axis=1)
        return tuple(back(ops.as_contig(part)) for back, part in zip(backprops, parts))

    return reduce(add, outputs) if is_sum else ops.xp.concatenate(outputs, axis=1), backprop


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
