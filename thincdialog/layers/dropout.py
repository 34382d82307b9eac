"""Dropout of single values or of whole tokens in training."""

from typing import Any, Callable, Tuple

import numpy
from thinc.api import Dropout, Model
from thinc.types import Ragged

from ..ops.bags import bag_numbers, kept_tokens
from ..ops.devices import host_tokens, no_gradient
from ..ops.dialog_ops import draw_mask
from ..registry import registry

InT = Ragged
OutT = Ragged


def CheckedDropout(rate: float) -> Model:
    """Build Thinc's ``Dropout.v1``, but check the rate first, because a model with a rate of 1
    could not learn.

    rate (float): Probability of zeroing a value, at least 0.0 and below 1.0.
    RETURNS (Model): Output shape as the input.
    RAISES (ValueError): If rate is out of range.
    """
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"dropout = {rate}, but it must be at least 0 and below 1")
    dropout: Model = Dropout(rate)
    return dropout


@registry.layers("thincdialog.drop_tokens.v1")
def drop_tokens(rate: float = 0.1) -> Model[InT, OutT]:
    """Drop tokens at random in training, so that the model does not depend on single words.

    An example whose tokens would all be dropped keeps all of them.

    rate (float): Probability of dropping a token, at least 0 and below 1.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): The remaining tokens, in order.
    RAISES (ValueError): If rate is out of range.
    """
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"drop_tokens: rate = {rate}, but it must be at least 0 and below 1")
    # Thinc's set_dropout_rate sets attributes of this name.
    return Model("drop_tokens", forward, attrs={"dropout_rate": rate})


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    rate = model.attrs["dropout_rate"]
    if not is_train or not rate or not len(X.dataXd):
        return X, lambda dY: dY
    tokens, old = host_tokens(X)
    is_kept = draw_mask(model.ops, (len(tokens),), rate) > 0  # (n_tokens,)
    owners: Any = bag_numbers(old)  # (n_tokens,)
    is_empty = numpy.bincount(owners[is_kept], minlength=len(old)) == 0  # (n_examples,)
    is_kept |= is_empty[owners]
    return kept_tokens(tokens, old, is_kept), lambda dY: no_gradient(X)
