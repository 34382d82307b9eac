"""Losses of users: what they return is looked at."""

from typing import Any, Callable, Tuple

from ..contract import Returned, called, is_ours


class WatchedLoss:
    """A loss that is called as before.

    loss (Callable): Gives the gradient by the scores, and the loss of each example.
    """

    def __init__(self, loss: Callable):
        self.loss = loss

    @property
    def __wrapped__(self) -> Callable:
        return self.loss

    def __call__(self, scores: Any, *given: Any) -> Tuple[Any, Any]:
        """RAISES (CodeError): If it gives something else."""
        shape = scores.shape
        wanted = f"a gradient of shape {shape} and losses of shape {shape[:1]}, one an example"
        returned = Returned(f"{wanted}, in float32", _are_losses)
        found: Tuple[Any, Any] = called(self.loss, returned, scores, *given)
        return found


def watched_loss(loss: Callable) -> Callable:
    """A loss as an agent calls it; those of ours cost nothing."""
    return loss if is_ours(type(loss)) else WatchedLoss(loss)


def _are_losses(value: Any, scores: Any, *given: Any) -> bool:
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    if [getattr(each, "shape", None) for each in value] != [scores.shape, scores.shape[:1]]:
        return False
    gradient, losses = value
    return bool(gradient.dtype == scores.dtype and losses.dtype.kind == "f")
