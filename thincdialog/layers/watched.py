"""Checks of the values that ``forward`` and ``backprop`` of custom layers return."""

import math
from itertools import chain
from typing import Any, Callable, List, Optional, Set, Tuple

from thinc.api import Model
from thinc.types import Padded, Ragged

from ..contract import (
    CodeError,
    Returned,
    error_line,
    is_users,
    place_of,
    show,
    watching,
    wrong_value,
)
from ..errors import Problem
from ..registry import registry

# The attribute of a model that names the custom function that built it.
MADE_BY = "made_by"
_NO_OUTPUT = (type(None), str, bytes, bool, int, float, dict)


class WatchedForward:
    """Call the ``forward`` of a custom layer, and check what it returns.

    A value that cannot be an output or a gradient raises an error. If the layer changes the number
    of rows, this is only noted, because some layers may: a caller that finds rows missing asks
    ``changed_rows``.

    forward (Callable): (model, X, is_train) to (Y, backprop).
    change (str): How the layer changed the number of rows; "" if it did not.
    """

    def __init__(self, forward: Callable):
        self.forward = forward
        self.change = ""

    @property
    def __wrapped__(self) -> Callable:
        return self.forward

    def __call__(self, model: Model, X: Any, is_train: bool) -> Tuple[Any, Callable]:
        found = self.forward(model, X, is_train=is_train)
        if not (isinstance(found, tuple) and len(found) == 2 and callable(found[1])):
            raise wrong_value(self.forward, found, "the pair (Y, backprop)")
        Y, backprop = found
        if isinstance(Y, _NO_OUTPUT):
            raise wrong_value(self.forward, Y, "an array (or Ragged, Padded, a list) as Y")
        _check_floats(self.forward, Y)
        before, after = _row_counts(X), _row_counts(Y)
        if before and after and not before & after:
            self.change = f"{_rows_text(min(after))} for {_rows_text(min(before))}"
        if not is_train:
            return found

        def watched(dY: Any) -> Any:
            dX = backprop(dY)
            wanted = _float_shape(X)
            # The gradient of ids is never needed.
            if wanted is not None and _float_shape(dX) != wanted:
                kind = f"the gradient of X, {type(X).__name__} of shape {wanted}"
                given = dX.data if isinstance(dX, (Ragged, Padded)) else dX
                raise wrong_value(backprop, given, kind)
            _check_floats(backprop, dX)
            return dX

        return Y, watched


def _check_floats(function: Callable, X: Any) -> None:
    array = X.data if isinstance(X, (Ragged, Padded)) else X
    dtype = getattr(array, "dtype", None)
    if dtype is not None and dtype.kind == "f" and dtype.itemsize != 4:
        raise CodeError(f"{place_of(function)} returned {dtype.name}, but should return float32")


def _rows_text(n_rows: int) -> str:
    return f"{n_rows:,} row{'' if n_rows == 1 else 's'}"


def _row_counts(X: Any) -> Set[int]:
    """Return the possible numbers of rows: that of the sequences, and that of all their items;
    empty if the number is unknown."""
    if isinstance(X, Ragged):
        return {len(X.lengths), len(X.data)}
    if isinstance(X, Padded):
        return {len(X.lengths), int(X.size_at_t.sum())}
    if isinstance(X, list):
        return {len(X), sum(len(x) for x in X if hasattr(x, "shape") and x.shape)}
    shape = getattr(X, "shape", ())
    return {shape[0]} if shape else set()


def _float_shape(X: Any) -> Optional[Tuple[int, ...]]:
    """Return the shape of an input if it is one array and has a gradient, else None."""
    array = X.data if isinstance(X, (Ragged, Padded)) else X
    dtype = getattr(array, "dtype", None)
    return array.shape if dtype is not None and dtype.kind == "f" else None


def watch_layers(model: Model, function: Callable) -> Model:
    """Check the custom layers of a model that a registered function has built, and return the
    model."""
    for node in model.walk():
        if not callable(node._func):
            text = f"{show(node._func)} as the forward of '{node.name}', expected a function"
            raise CodeError(f"{place_of(function)} returned {text}")
        if is_users(function):
            node.attrs.setdefault(MADE_BY, place_of(function))
        if not isinstance(node._func, WatchedForward) and is_users(node._func):
            node._func = WatchedForward(node._func)
    return model


def look_at(model: Model) -> str:
    """Return where to look for an error in a model: the place of its first custom layer, or of the
    custom function that built the model or a part of it; "" if there are none."""
    layers = (place_of(node._func) for node in model.walk() if is_users(node._func))
    builders = (node.attrs[MADE_BY] for node in model.walk() if MADE_BY in node.attrs)
    return next(chain(layers, builders), "")


# Thinc layer to a hint that is shown if the layer refuses its input.
_REMEDIES = {
    "add": "replace it by concatenate.v1, followed by Linear.v1 with "
    "thincdialog.identity_init.v1 (docs/transformers.md), if its inputs are tokens"
}


def refused_by_layer(error: BaseException) -> Optional[Problem]:
    """Return the problem if a Thinc layer could not work with its input; None if the error comes
    from elsewhere."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    package, _, layer = name.rpartition(".")
    if package != "thinc.layers":
        return None
    text = f"[agent.model] Thinc's layer {layer} cannot process its input: {error_line(error)}"
    return Problem("", text, _REMEDIES.get(layer, "--traceback shows where"))


def changed_rows(model: Model) -> Optional[CodeError]:
    """Return the error for a custom layer that changed the number of rows; None if none did."""
    forwards: List[Any] = [node._func for node in model.walk()]
    for forward in forwards:
        if isinstance(forward, WatchedForward) and forward.change:
            place, change = place_of(forward.forward), forward.change
            text = f"{place} returned {change}: a layer must keep all rows"
            return CodeError(text)
    return None


def _are_first_weights(value: Any, ops: Any = None, shape: Any = None, *rest: Any) -> bool:
    is_array = hasattr(value, "shape") and hasattr(value, "dtype") and value.dtype.kind == "f"
    if not is_array or (shape is not None and value.shape != tuple(shape)):
        return False
    return math.isfinite(value.sum(dtype="d"))


_FIRST_WEIGHTS = "an array of the shape that it was given, of numbers (float32) that are finite"
registry.initializers.makes(Callable, watching(Returned(_FIRST_WEIGHTS, _are_first_weights)))
registry.layers.makes(Model, watch_layers)
registry.models.makes(Model, watch_layers)
