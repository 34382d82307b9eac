"""What is left out at random in training: cells, or whole tokens."""

from typing import Any, Callable, Tuple

import numpy
from thinc.api import Model
from thinc.layers.dropout import forward as thinc_forward
from thinc.types import Ragged

from ..ops.bags import bag_numbers
from ..ops.dialog_cupy_ops import DialogCupyOps
from ..ops.known_numbers import derived
from ..registry import registry
from .gradients import gradient_of_rows

InT = Ragged
OutT = Ragged


def CheckedDropout(rate: float) -> Model:
    """Thinc's ``Dropout.v1``, with the rate checked: one of 1 would leave nothing to learn from.

    rate (float): Probability of zeroing a cell, at least 0.0 and below 1.0.
    RETURNS (Model): Output like the input.
    RAISES (ValueError): If rate is out of range.
    """
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"dropout = {rate}, but it must be at least 0 and below 1")
    return Model("dropout", _forward_cells, attrs={"dropout_rate": rate, "is_enabled": True})


def _forward_cells(model: Model, X: Any, is_train: bool) -> Tuple[Any, Callable]:
    rate, ops = rate_now(model, is_train), model.ops
    if not (rate and isinstance(ops, DialogCupyOps)):
        return thinc_forward(model, X, is_train)
    if not isinstance(X, Ragged):
        return ops.dropout(X, rate)
    Y, backprop = ops.dropout(X.dataXd, rate)
    return Ragged(Y, X.lengths), lambda dY: Ragged(backprop(dY.dataXd), X.lengths)


def rate_now(model: Model, is_train: bool) -> float:
    """The rate of a dropout layer; 0 where nothing is dropped."""
    is_on = is_train and model.attrs["is_enabled"]
    return float(model.attrs["dropout_rate"]) if is_on else 0.0


@registry.layers("thincdialog.drop_tokens.v1")
def drop_tokens(rate: float = 0.1) -> Model[InT, OutT]:
    """Leave out tokens at random in training, so that no single word decides.

    An example whose tokens would all be left out keeps them all.

    rate (float): Probability of leaving a token out, at least 0 and below 1.
    X (Ragged): Ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): The tokens that stay, in order.
    RAISES (ValueError): If rate is out of range.
    """
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"drop_tokens: rate = {rate}, but it must be at least 0 and below 1")
    # Thinc's set_dropout_rate knows attributes of this name.
    return Model("drop_tokens", forward, attrs={"dropout_rate": rate})


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    n_tokens = X.dataXd.shape[0]
    rate = model.attrs["dropout_rate"]
    if not is_train or not rate or not n_tokens:
        return X, lambda dY: dY
    if isinstance(model.ops, DialogCupyOps):
        return _drop_on_device(model.ops, X, rate)
    xp, n_examples = model.ops.xp, X.lengths.shape[0]
    stays = model.ops.get_dropout_mask((n_tokens,), rate) > 0  # (n_tokens,)
    owners = bag_numbers(model.ops, X.lengths, n_tokens)  # (n_tokens,)
    is_empty = xp.bincount(owners[stays], minlength=n_examples) == 0  # (n_examples,)
    stays |= is_empty[owners]
    lengths = xp.bincount(owners[stays], minlength=n_examples).astype("int32")  # (n_examples,)

    def backprop(dY: OutT) -> InT:
        dX = xp.zeros(X.dataXd.shape, dtype=dY.dataXd.dtype)
        dX[stays] = dY.dataXd  # (n_tokens, 2) from (n_kept, 2)
        return Ragged(dX, X.lengths)

    return Ragged(X.dataXd[stays], lengths), backprop  # (n_kept, 2)


def _drop_on_device(ops: DialogCupyOps, X: Ragged, rate: float) -> Tuple[Ragged, Callable]:
    """The host draws, so that it knows what stays."""
    kept, tokens, lengths = derived(ops, _kept, X.dataXd, X.lengths, rate, ops.next_draws())

    def backprop(dY: OutT) -> InT:
        return Ragged(gradient_of_rows(ops, X.dataXd, [(kept, dY.dataXd)]), X.lengths)

    return Ragged(tokens, lengths), backprop


def _kept(tokens: Any, lengths: Any, rate: float, draws: Any) -> Tuple[Any, ...]:
    """Numbers of the tokens that stay, these tokens, and how many of each example."""
    stays = draws.random(len(tokens), dtype="f") >= rate
    owners = numpy.arange(len(lengths)).repeat(lengths)
    is_empty = numpy.bincount(owners[stays], minlength=len(lengths)) == 0
    stays |= is_empty[owners]
    left = numpy.bincount(owners[stays], minlength=len(lengths)).astype("int32")
    return stays.nonzero()[0], tokens[stays], left
