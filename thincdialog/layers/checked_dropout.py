"""Thinc's dropout, with its rate checked."""

from thinc.api import Dropout, Model


def CheckedDropout(rate: float) -> Model:
    """Thinc's ``Dropout.v1``, which takes any rate: one of 1 or more would leave
    nothing to learn from.

    rate (float): Probability of zeroing a cell, at least 0.0 and below 1.0.
    RETURNS (Model): Output like the input.
    RAISES (ValueError): If rate is out of range.
    """
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"dropout = {rate}, but it must be at least 0 and below 1")
    return Dropout(rate)
