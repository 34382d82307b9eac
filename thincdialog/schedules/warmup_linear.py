"""Warm-up, then a straight line down to zero."""

from typing import Iterable

from ..registry import registry
from .warmup import warmup_then


@registry.schedules("thincdialog.WarmupLinear.v1")
def warmup_linear(initial_rate: float, warmup_steps: int, total_steps: int) -> Iterable[float]:
    """Grow to the initial rate, then fall in equal steps; zero from ``total_steps`` on.

    initial_rate (float): The highest rate, above 0.
    warmup_steps (int): Steps of growth, 0 or more; the first already learns (Thinc's
        warmup_linear.v1 starts with a step of rate zero).
    total_steps (int): Steps in all, more than warmup_steps.
    RETURNS (Iterable[float]): The rate of each step.
    RAISES (ValueError): If an argument is out of range.
    """
    n_decay = total_steps - warmup_steps
    return warmup_then(
        initial_rate, warmup_steps, total_steps, lambda step: max(0.0, 1.0 - step / n_decay)
    )
