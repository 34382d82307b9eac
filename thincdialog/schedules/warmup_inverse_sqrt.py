"""Warm-up, then the inverse square root of the step."""

import math
from typing import Iterable, Optional

from ..registry import registry
from .warmup import warmup_then


@registry.schedules("thincdialog.WarmupInverseSqrt.v1")
def warmup_inverse_sqrt(
    initial_rate: float, warmup_steps: int, total_steps: Optional[int] = None
) -> Iterable[float]:
    """Grow to the initial rate, then fall with the inverse root of the step's number.

    initial_rate (float): The highest rate, above 0.
    warmup_steps (int): Steps of growth, 0 or more; the rate is halved after three times
        as many steps more.
    total_steps (Optional[int]): From this step on the rate is zero; None for never.
    RETURNS (Iterable[float]): The rate of each step.
    RAISES (ValueError): If an argument is out of range.
    SOURCE: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 5.3
    """
    unit = max(1, warmup_steps)

    def decay(step: int) -> float:
        if total_steps is not None and step >= total_steps - warmup_steps:
            return 0.0
        return math.sqrt(unit / (unit + step))

    last = warmup_steps + 1 if total_steps is None else total_steps
    return warmup_then(initial_rate, warmup_steps, last, decay)
