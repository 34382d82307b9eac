"""A padding token for texts without tokens."""

from typing import Any, Callable, Tuple

import numpy
from thinc.api import Model
from thinc.types import Ragged

from ..ops.dialog_cupy_ops import DialogCupyOps
from ..ops.known_numbers import derived, on_host
from ..registry import registry

InT = Ragged
OutT = Ragged


@registry.layers("thincdialog.fill_empty.v1")
def fill_empty() -> Model[InT, OutT]:
    """Give every example without tokens one token, id 0 (padding) in segment 0, so that
    layers after it never meet an empty sequence.

    X (Ragged): Ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): The same with at least one token an example.
    """
    return Model("fill_empty", forward)


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, tokens = model.ops, X.dataXd
    if on_host(ops, X.lengths).all():
        return X, lambda dY: dY
    # (n_tokens, 2), (n_examples,), (n_old_tokens,)
    filled, lengths, places = derived(ops, _filled, tokens, X.lengths)

    def backprop(dY: OutT) -> InT:
        if isinstance(ops, DialogCupyOps) and ops.is_no_gradient(dY.dataXd):
            return Ragged(ops.no_gradient(tokens), X.lengths)
        return Ragged(dY.dataXd[places], X.lengths)  # (n_old_tokens, 2)

    return Ragged(filled, lengths), backprop


def _filled(tokens: Any, old: Any) -> Tuple[Any, ...]:
    """The tokens with padding, the new lengths, and where the old tokens are now: where their
    example starts, at their old distance from its start."""
    lengths = numpy.maximum(old, 1)
    moved = (numpy.cumsum(lengths) - lengths) - (numpy.cumsum(old) - old)  # (n_examples,)
    places = numpy.arange(len(tokens)) + moved.repeat(old)
    filled = numpy.zeros((int(lengths.sum()), 2), dtype="int32")
    filled[places] = tokens
    return filled, lengths, places
