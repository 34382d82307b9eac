"""Learning rates that warm up, then decay."""

import math
from itertools import count
from typing import Callable, Iterable, Iterator, Optional

from ..registry import registry


@registry.schedules("thincdialog.WarmupLinear.v1")
def warmup_linear(initial_rate: float, warmup_steps: int, total_steps: int) -> Iterable[float]:
    """Increase the rate to the initial rate, then decrease it in equal steps; zero from
    ``total_steps`` on.

    initial_rate (float): The highest rate, above 0.
    warmup_steps (int): Number of steps with an increasing rate, 0 or more. The first step already
        has a rate above zero (in Thinc's warmup_linear.v1 it is zero).
    total_steps (int): Number of steps in total, more than warmup_steps.
    RETURNS (Iterable[float]): The rate of each step.
    RAISES (ValueError): If an argument is out of range.
    """
    n_decay = total_steps - warmup_steps
    return _warmup_then(
        initial_rate, warmup_steps, total_steps, lambda step: max(0.0, 1.0 - step / n_decay)
    )


@registry.schedules("thincdialog.WarmupCosine.v1")
def warmup_cosine(
    initial_rate: float, warmup_steps: int, total_steps: int, final_share: float = 0.0
) -> Iterable[float]:
    """Increase the rate to the initial rate, then decrease it along half a cosine wave.

    initial_rate (float): The highest rate, above 0.
    warmup_steps (int): Number of steps with an increasing rate, 0 or more.
    total_steps (int): Number of steps in total, more than warmup_steps.
    final_share (float): Fraction of the initial rate from ``total_steps`` on, 0.0 to 1.0.
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

    return _warmup_then(initial_rate, warmup_steps, total_steps, decay)


@registry.schedules("thincdialog.WarmupInverseSqrt.v1")
def warmup_inverse_sqrt(
    initial_rate: float,
    warmup_steps: int,
    total_steps: Optional[int] = None,
    gamma: Optional[int] = None,
) -> Iterable[float]:
    """Increase the rate to the initial rate, then decrease it with the inverse square root of the
    number of steps: n steps later, it is the initial rate times sqrt(gamma / (gamma + n)).

    initial_rate (float): The highest rate, above 0.
    warmup_steps (int): Number of steps with an increasing rate, 0 or more.
    total_steps (Optional[int]): Step from which on the rate is zero; None for never.
    gamma (Optional[int]): The rate is halved 3 * gamma steps after the warm-up; 1 or more;
        ``warmup_steps`` if None.
    RETURNS (Iterable[float]): The rate of each step.
    RAISES (ValueError): If an argument is out of range.
    SOURCE: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 5.3
    """
    if gamma is not None and gamma < 1:
        raise ValueError(f"gamma = {gamma}, but it must be 1 or more (steps)")
    unit = max(1, warmup_steps) if gamma is None else gamma

    def decay(step: int) -> float:
        if total_steps is not None and step >= total_steps - warmup_steps:
            return 0.0
        return math.sqrt(unit / (unit + step))

    last = warmup_steps + 1 if total_steps is None else total_steps
    return _warmup_then(initial_rate, warmup_steps, last, decay)


def _warmup_then(
    initial_rate: float, warmup_steps: int, total_steps: int, decay: Callable[[int], float]
) -> Iterator[float]:
    """Return rates that increase in equal steps to ``initial_rate``, then follow ``decay``, a
    factor of the rate for each step since the warm-up (0, 1, ...). The first rate is above zero,
    and step ``warmup_steps`` (counted from 1) is the first with the full rate."""
    if initial_rate <= 0:
        raise ValueError(f"initial_rate = {initial_rate}, but it must be above 0")
    if not 0 <= warmup_steps < total_steps:
        raise ValueError(
            f"warmup_steps = {warmup_steps} and total_steps = {total_steps}, but "
            "0 <= warmup_steps < total_steps must hold"
        )

    def rate(step: int) -> float:
        if step < warmup_steps:
            return initial_rate * (step + 1) / warmup_steps
        return initial_rate * decay(step - warmup_steps)

    # Thinc's optimizers and config checks expect a generator.
    return (rate(step) for step in count())
