"""The fields of an observation that a model encodes, each by itself."""

from typing import Optional, Sequence

import numpy as np
from thinc.api import Model

from ..messages import column
from ..protocol import Observations

# Their places in batch_lengths and max_tokens.
CONTEXT = 0
LABEL = 1

NO_LIMIT = np.iinfo(np.int64).max


def token_limits(observations: Observations, field: int) -> Optional[np.ndarray]:
    """What ``max_tokens`` of the observations says about a field.

    RETURNS (Optional[np.ndarray]): Tokens of each row at most, shape (n,), int64; None
        if no row has a limit.
    """
    asked = column(observations, "max_tokens")
    if asked.count(None) == len(asked):
        return None
    return np.array(
        [NO_LIMIT if limits is None else limits[field] for limits in asked], dtype=np.int64
    )


def candidate_limits(
    observations: Observations, n_candidates: int, targets: Sequence[int]
) -> Optional[np.ndarray]:
    """What ``max_tokens`` of the observations says about candidates: the lowest limit of the
    rows whose label each is.

    targets (Sequence[int]): Of each observation the number of its label among them.
    RETURNS (Optional[np.ndarray]): Tokens of each candidate at most, shape (n_candidates,),
        int64; None if no row has a limit.
    """
    of_rows = token_limits(observations, LABEL)
    if of_rows is None:
        return None
    limits = np.full(n_candidates, NO_LIMIT)
    np.minimum.at(limits, targets, of_rows)
    return limits


def has_rectangles(model: Model) -> bool:
    """Whether any layer lays out its input as wide as the longest row: Thinc's
    ``with_padded`` and its like, which have it in their names."""
    return any("padded" in node.name for node in model.walk())
