"""Warm-up, then half a cosine down."""

import math
from typing import Iterable

from ..registry import registry
from .warmup import warmup_then


@registry.schedules("thincdialog.WarmupCosine.v1")
def warmup_cosine(
    initial_rate: float, warmup_steps: int, total_steps: int, final_share: float = 0.0
) -> Iterable[float]:
    """Grow to the initial rate, then fall as half a cosine.

    initial_rate (float): The highest rate, above 0.
    warmup_steps (int): Steps of growth, 0 or more.
    total_steps (int): Steps in all, more than warmup_steps.
    final_share (float): Share of the initial rate from ``total_steps`` on, 0.0 to 1.0.
    RETURNS (Iterable[float]): The rate of each step.
    RAISES (ValueError): If an argument is out of range.
    SOURCE: Loshchilov and Hutter 2017, https://arxiv.org/abs/1608.03983
    """
    if not 0.0 <= final_share <= 1.0:
        raise ValueError(f"final_share = {final_share}, but it must be 0.0 to 1.0")
    n_decay = total_steps - warmup_steps

    def decay(step: int) -> float:
        wave = 0.5 * (1.0 + math.cos(math.pi * min(1.0, step / n_decay)))
        return final_share + (1.0 - final_share) * wave

    return warmup_then(initial_rate, warmup_steps, total_steps, decay)
