"""What the schedules with a warm-up have in common."""

from itertools import count
from typing import Callable, Iterator


def warmup_then(
    initial_rate: float, warmup_steps: int, total_steps: int, decay: Callable[[int], float]
) -> Iterator[float]:
    """Rates that grow in equal steps to ``initial_rate``, then follow ``decay``.

    The first step already learns, and step ``warmup_steps`` (counted from 1) is the
    first with the full rate.

    initial_rate (float): The highest rate, above 0.
    warmup_steps (int): Steps of growth, 0 or more.
    total_steps (int): Steps in all, more than warmup_steps.
    decay (Callable[[int], float]): Factor of the rate, from the number of steps since
        the warm-up (0, 1, ...).
    YIELDS (float): The rate of each step, without end.
    RAISES (ValueError): If an argument is out of range.
    """
    if initial_rate <= 0:
        raise ValueError(f"initial_rate = {initial_rate}, but it must be above 0")
    if not 0 <= warmup_steps < total_steps:
        raise ValueError(
            f"warmup_steps = {warmup_steps} and total_steps = {total_steps}, but "
            "0 <= warmup_steps < total_steps must hold"
        )
    return _rates(initial_rate, warmup_steps, decay)


def _rates(
    initial_rate: float, warmup_steps: int, decay: Callable[[int], float]
) -> Iterator[float]:
    for step in count():
        if step < warmup_steps:
            yield initial_rate * (step + 1) / warmup_steps
        else:
            yield initial_rate * decay(step - warmup_steps)
