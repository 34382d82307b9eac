"""Padding tokens for texts without tokens."""

from typing import Any, Callable, Tuple

import numpy
from thinc.api import Model
from thinc.types import Ragged

from ..ops.devices import host_tokens, no_gradient
from ..registry import registry

InT = Ragged
OutT = Ragged


@registry.layers("thincdialog.fill_empty.v1")
def fill_empty() -> Model[InT, OutT]:
    """Give every example without tokens one token, id 0 (padding) in segment 0, so that later
    layers never get an empty sequence.

    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): The same tokens, with at least one token per example.
    """
    return Model("fill_empty", forward)


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    tokens, old = host_tokens(X)  # (n_tokens, 2), (n_examples,)
    if old.all():
        return X, lambda dY: dY
    lengths: Any = numpy.maximum(old, 1)
    # A token moves with the start of its example and keeps its distance from the start.
    moved = (numpy.cumsum(lengths) - lengths) - (numpy.cumsum(old) - old)  # (n_examples,)
    filled: Any = numpy.zeros((int(lengths.sum()), 2), dtype="int32")
    filled[numpy.arange(len(tokens)) + moved.repeat(old)] = tokens
    return Ragged(filled, lengths), lambda dY: no_gradient(X)
