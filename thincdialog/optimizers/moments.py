"""The relation between Adam's two moments."""

import math

# For larger exponents, exp would overflow. The result is zero for much smaller ones.
_LARGEST_EXPONENT = 700.0


def least_second_moment(b1: float, b2: float, n_updates: int) -> float:
    """Return the smallest possible ratio of a second moment to the square of its first moment.

    The bound holds if both moments began at zero and saw the same gradients, with decays that did
    not change. It is the Cauchy-Schwarz inequality, since each gradient has a weight in both
    moments.

    b1 (float): Decay of the first moment.
    b2 (float): Decay of the second moment.
    n_updates (int): Largest number of gradients that the moments saw; 1 or more.
    RETURNS (float): 0 if these decays imply no bound.
    """
    if not 0.0 < b2 < 1.0 or b1 >= 1.0:
        return 0.0
    ratio = b1 * b1 / b2
    exponent = n_updates * math.log(ratio) if ratio else -math.inf
    if exponent > _LARGEST_EXPONENT:
        return 0.0
    # 1 + ratio + ... + ratio ** (n_updates - 1)
    total = n_updates if ratio == 1.0 else math.expm1(exponent) / (ratio - 1.0)
    return (1.0 - b2) / ((1.0 - b1) ** 2 * total)
