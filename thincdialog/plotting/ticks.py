"""Round numbers for the axes of terminal pictures."""

import math
from typing import List


def round_ticks(low: float, high: float, most: int) -> List[float]:
    """Multiples of 1, 2 or 5 times a power of ten within two limits.

    low (float): Lower limit.
    high (float): Upper limit, above the lower one.
    most (int): How many there may be.
    """
    rough = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    # The next one up where rounding leaves one too many.
    for factor in (1, 2, 5, 10, 20):
        step = factor * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 <= most:
            break
    return [number * step for number in range(first, last + 1)]


def tick_labels(ticks: List[float]) -> List[str]:
    """The ticks as text, all with the decimals that the finest of them needs."""
    if not ticks:
        return []
    step = min((b - a for a, b in zip(ticks, ticks[1:])), default=abs(ticks[0]) or 1.0)
    largest = max(abs(tick) for tick in ticks)
    if step < 1e-4 or largest >= 1e7:
        return [f"{tick:.3g}" for tick in ticks]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{tick:,.{decimals}f}" for tick in ticks]
