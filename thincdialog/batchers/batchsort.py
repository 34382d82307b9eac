"""Batches of one size from rows of like length."""

from typing import List

import numpy as np

from ..registry import registry
from .batcher import Batcher
from .lengths import Lengths
from .like_lengths import order_by_length
from .sizes import SizeT, check_size


@registry.batchers("thincdialog.Batchsort.v1")
def Batchsort(size: SizeT, buffer: int = 256) -> Batcher:
    """Batches of ``size`` rows of like length. (ParlAI's batchsort, with two lengths.)

    Twelve quotes of 8, 10, 17, 2, 2, 38, 6, 12, 6, 12, 13 and 5 words make, by 3, the
    batches (2, 2, 5) (6, 6, 8) (10, 12, 12) (13, 17, 38), in random order.

    size (SizeT): Rows in a batch, 1 or more, or a schedule of it.
    buffer (int): Batches' worth of rows to choose from, 1 or more.
    RAISES (ConfigError): If size or buffer is less than 1.
    """
    return BatchsortBatcher(check_size("thincdialog.Batchsort.v1", "size", size, buffer), buffer)


class BatchsortBatcher(Batcher):
    """See ``Batchsort``."""

    def plan(self, lengths: Lengths, limit: int, rng: np.random.Generator) -> List[np.ndarray]:
        """Neighbours on the line of like lengths, ``limit`` at a time."""
        order = order_by_length(lengths.counts, rows=limit)
        return [order[start : start + limit] for start in range(0, len(order), limit)]
