"""Batches of a fixed number of rows of similar lengths."""

from typing import List, Optional

import numpy as np

from ..errors import ConfigError, Problem
from ..registry import registry
from .batcher import Batcher
from .lengths import Lengths
from .like_lengths import order_by_length
from .sizes import Sizes, SizeT, check_size


@registry.batchers("thincdialog.Batchsort.v1")
def Batchsort(size: SizeT, buffer: int = 256, max_range: Optional[int] = None) -> Batcher:
    """Make batches of ``size`` rows of similar lengths, to reduce padding. This is ParlAI's
    batchsort, except that contexts and labels both count.

    For example, twelve texts of 8, 10, 17, 2, 2, 38, 6, 12, 6, 12, 13 and 5 words make four
    batches of size 3: (2, 2, 5) (6, 6, 8) (10, 12, 12) (13, 17, 38), in random order.

    size (SizeT): Number of rows in a batch, 1 or more, or a schedule of this number.
    buffer (int): Number of batches to read rows for at a time, 1 or more.
    max_range (Optional[int]): Maximum difference in tokens between the longest and the shortest
        context of a batch, and likewise for its labels, 0 or more (ParlAI's
        `--batch-length-range`). Some batches then have fewer than `size` rows. None for no limit.
    RAISES (ConfigError): If size or buffer is less than 1, or max_range less than 0.
    """
    if max_range is not None and max_range < 0:
        text = f"'max_range' of thincdialog.Batchsort.v1 is {max_range}"
        raise ConfigError([Problem("", text, "give 0 tokens or more, or null for no limit")])
    sizes = check_size("thincdialog.Batchsort.v1", "size", size, buffer)
    return BatchsortBatcher(sizes, buffer, max_range)


class BatchsortBatcher(Batcher):
    """Plan batches of a fixed number of rows of similar lengths (see ``Batchsort``)."""

    def __init__(self, sizes: Sizes, buffer: int, max_range: Optional[int] = None):
        super().__init__(sizes, buffer)
        self.max_range = max_range

    def plan(self, lengths: Lengths, limit: int, rng: np.random.Generator) -> List[np.ndarray]:
        """Order the rows by length, and divide this order into batches of ``limit`` rows."""
        order = order_by_length(lengths.counts, rows=limit)
        if self.max_range is None:
            return [order[start : start + limit] for start in range(0, len(order), limit)]
        starts, low, high = [0], lengths.counts[order[0]], lengths.counts[order[0]]
        for place, counts in enumerate(lengths.counts[order]):
            low, high = np.minimum(low, counts), np.maximum(high, counts)
            if place - starts[-1] == limit or (high - low > self.max_range).any():
                starts.append(place)
                low = high = counts
        return np.split(order, starts[1:])
