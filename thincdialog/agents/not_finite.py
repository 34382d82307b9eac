"""The error for training that has run off to infinity."""

from typing import Optional, Sequence

from ..errors import TrainingError


def not_finite(what: str, ids: Sequence[Optional[str]]) -> TrainingError:
    """The error for a loss or gradient that is inf or nan.

    what (str): "loss" or "gradient".
    ids (Sequence[Optional[str]]): Of the examples it comes from.
    """
    shown = ", ".join(map(str, ids[:64])) + (f", ... ({len(ids)} in all)" if len(ids) > 64 else "")
    return TrainingError(
        f"The {what} is not finite; training stopped. Examples of the batch: {shown}. "
        "Try a lower learn_rate, a smaller grad_clip, or look at these examples."
    )
