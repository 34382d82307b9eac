"""The fields of an example that a model encodes, each by itself."""

from typing import Optional, Sequence

import numpy as np
from thinc.api import Model

from ..examples.batch import NO_LIMIT, Batch

# Their places in batch_lengths and max_tokens.
CONTEXT = 0
LABEL = 1


def candidate_limits(
    batch: Batch, n_candidates: int, targets: Sequence[int]
) -> Optional[np.ndarray]:
    """What ``max_tokens`` of the rows says about candidates: the lowest limit of the rows
    whose label each is.

    targets (Sequence[int]): Of each row the number of its label among them.
    RETURNS (Optional[np.ndarray]): Tokens of each candidate at most, shape (n_candidates,),
        int64; None if no row has a limit.
    """
    of_rows = batch.limits(LABEL)
    if of_rows is None:
        return None
    limits = np.full(n_candidates, NO_LIMIT)
    np.minimum.at(limits, targets, of_rows)
    return limits


def has_rectangles(model: Model) -> bool:
    """Whether any layer lays out its input as wide as the longest row: Thinc's
    ``with_padded`` and its like, which have it in their names."""
    return any("padded" in node.name for node in model.walk())
