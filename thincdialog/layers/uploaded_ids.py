"""Token ids for layers of Thinc's and of users on a GPU, which expect all arrays there."""

from typing import Any, Callable, Tuple

import numpy
from thinc.api import Model, add, chain, concatenate, residual, tuplify, with_array
from thinc.types import Ragged

from ..contract import PACKAGE
from ..ops.devices import upload
from .watched import WatchedForward

# Layers of Thinc's that only hand on what they are given.
_HANDS_ON = {each.__module__ for each in (add, chain, concatenate, residual, tuplify, with_array)}


class UploadedIds:
    """The ``forward`` of a layer, called with ids on the model's device. Its gradient of ids is
    zeros on the host, as that of layers which read ids there: it is never used.

    forward (Callable): (model, X, is_train) to (Y, backprop).
    """

    def __init__(self, forward: Callable):
        self.forward = forward

    @property
    def __wrapped__(self) -> Callable:
        return self.forward

    def __call__(self, model: Model, X: Any, is_train: bool) -> Tuple[Any, Callable]:
        parts = X if isinstance(X, tuple) else (X,)
        if not any(map(_is_on_host, parts)):
            return self.forward(model, X, is_train)
        given = tuple(_uploaded(model.ops, part) for part in parts)
        Y, backprop = self.forward(model, given if isinstance(X, tuple) else given[0], is_train)

        def without_ids(dY: Any) -> Any:
            dX = backprop(dY)
            found = dX if isinstance(X, tuple) else (dX,)
            own = tuple(_zeros(part) if _is_on_host(part) else d for part, d in zip(parts, found))
            return own if isinstance(X, tuple) else own[0]

        return Y, without_ids


def upload_ids(model: Model) -> None:
    """Let each layer that is not ours get its ids on the device of the model; on the CPU,
    nothing is changed."""
    if model.ops.xp is numpy:
        return
    for node in model.walk():
        forward = node._func
        if isinstance(forward, WatchedForward):
            if not isinstance(forward.forward, UploadedIds):
                forward.forward = UploadedIds(forward.forward)
        elif not isinstance(forward, UploadedIds) and not _can_read(forward):
            node._func = UploadedIds(forward)


def _can_read(forward: Callable) -> bool:
    module = getattr(forward, "__module__", "")
    return module in _HANDS_ON or module.partition(".")[0] == PACKAGE


def _is_on_host(X: Any) -> bool:
    return isinstance(X.dataXd if isinstance(X, Ragged) else X, numpy.ndarray)


def _uploaded(ops: Any, X: Any) -> Any:
    if not _is_on_host(X):
        return X
    if isinstance(X, Ragged):
        return Ragged(upload(ops, X.dataXd)[0], X.lengths)
    return upload(ops, X)[0]


def _zeros(X: Any) -> Any:
    if isinstance(X, Ragged):
        return Ragged(numpy.zeros_like(X.dataXd), X.lengths)  # type: ignore[arg-type]
    return numpy.zeros_like(X)
