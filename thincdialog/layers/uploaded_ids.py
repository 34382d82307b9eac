"""Upload of token ids for Thinc's and custom layers on a GPU, which expect all arrays there."""

from functools import partial
from typing import Any, Callable, Tuple

import numpy
from thinc.api import Model, add, chain, concatenate, residual, tuplify, with_array
from thinc.types import Ragged

from ..contract import PACKAGE
from ..ops.devices import no_gradient, upload
from .watched import WatchedForward

# Thinc's layers that only pass their input to other layers.
_PASS_ON = {each.__module__ for each in (add, chain, concatenate, residual, tuplify, with_array)}


class UploadedIds:
    """Wrap the ``forward`` of a layer, and upload ids to the model's device before calling it. The
    gradient of ids is zeros on the host, as for layers that read ids there; it is never used.

    forward (Callable): (model, X, is_train) to (Y, backprop).
    """

    def __init__(self, forward: Callable):
        self.forward = forward

    @property
    def __wrapped__(self) -> Callable:
        return self.forward

    def __call__(self, model: Model, X: Any, is_train: bool) -> Tuple[Any, Callable]:
        Y, backprop = self.forward(model, _map_parts(partial(_uploaded, model.ops), X), is_train)
        return Y, lambda dY: _map_parts(_without_ids, X, backprop(dY))


def upload_ids(model: Model) -> None:
    """Make each layer that is not ours get its ids on the device of the model. On the CPU, nothing
    is changed."""
    if model.ops.xp is numpy:
        return
    for node in model.walk():
        forward = node._func
        if isinstance(forward, WatchedForward):
            if not isinstance(forward.forward, UploadedIds):
                forward.forward = UploadedIds(forward.forward)
        elif not isinstance(forward, UploadedIds) and not _can_read(forward):
            node._func = UploadedIds(forward)


def _map_parts(function: Callable, X: Any, *others: Any) -> Any:
    """Apply a function to an input, or to each part if the input is a tuple."""
    return tuple(map(function, X, *others)) if isinstance(X, tuple) else function(X, *others)


def _can_read(forward: Callable) -> bool:
    module = getattr(forward, "__module__", "")
    return module in _PASS_ON or module.partition(".")[0] == PACKAGE


def _is_on_host(X: Any) -> bool:
    return isinstance(X.dataXd if isinstance(X, Ragged) else X, numpy.ndarray)


def _uploaded(ops: Any, X: Any) -> Any:
    if not _is_on_host(X):
        return X
    if isinstance(X, Ragged):
        return Ragged(upload(ops, X.dataXd)[0], X.lengths)
    return upload(ops, X)[0]


def _without_ids(X: Any, dX: Any) -> Any:
    """Return the gradient of an input; zeros if the input is ids."""
    if not _is_on_host(X):
        return dX
    return no_gradient(X) if isinstance(X, Ragged) else numpy.zeros_like(X)
