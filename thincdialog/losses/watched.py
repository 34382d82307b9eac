"""Checks of the values that custom losses return."""

from typing import Any, Callable

from ..contract import Returned, watching
from ..registry import registry


def _are_losses(value: Any, scores: Any, *given: Any) -> bool:
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    if [getattr(each, "shape", None) for each in value] != [scores.shape, scores.shape[:1]]:
        return False
    gradient, losses = value
    return bool(gradient.dtype == scores.dtype and losses.dtype.kind == "f")


_LOSSES = "a gradient of the shape of the scores and one loss for each example, in float32"
registry.losses.makes(Callable, watching(Returned(_LOSSES, _are_losses)))
