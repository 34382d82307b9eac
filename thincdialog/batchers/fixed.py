"""Batches of a fixed number of conversations."""

from typing import List, Literal, Union

import numpy as np

from ..registry import registry
from .batcher import Batcher
from .lengths import Lengths
from .sizes import SizeT, check_size


@registry.batchers("thincdialog.Fixed.v1")
def Fixed(size: Union[SizeT, Literal["auto"]]) -> Batcher:
    """Make batches of ``size`` conversations in the order of the data. Only the last batch may have
    fewer.

    size (SizeT): Number of conversations in a batch, 1 or more, or a schedule of this number. With
        "auto", training chooses the number by the size of its data; elsewhere it is 128.
    RAISES (ConfigError): If size is less than 1.
    """
    size = 128 if isinstance(size, str) else size
    return FixedBatcher(check_size("thincdialog.Fixed.v1", "size", size), buffer=1)


class FixedBatcher(Batcher):
    """Plan batches of a fixed number of rows (see ``Fixed``)."""

    needs_lengths = False

    def plan(self, lengths: Lengths, limit: int, rng: np.random.Generator) -> List[np.ndarray]:
        """Divide the rows into batches of ``limit`` rows, in their order."""
        rows = np.arange(len(lengths.counts))
        return [rows[start : start + limit] for start in range(0, len(rows), limit)]
