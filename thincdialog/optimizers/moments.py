"""What Adam's two moments have to do with each other."""

import math

# Beyond, exp would overflow; the result would be zero long before.
_LARGEST_EXPONENT = 700.0


def least_second_moment(b1: float, b2: float, n_updates: int) -> float:
    """A second moment is at least this times the square of its first, if both began at zero
    and saw the same gradients with decays that did not change: by the inequality of Cauchy
    and Schwarz, where each gradient has a share in either.

    b1 (float): Decay of the first moment.
    b2 (float): Decay of the second moment.
    n_updates (int): Gradients that they saw, at most; 1 or more.
    RETURNS (float): 0 if these decays set no limit.
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
