"""Sums the gradients of microbatches in a fixed tree.

The order of additions depends only on how many microbatches there are, so the
sum has the same bits whoever computed which of them.
"""

from typing import List, Tuple

from thinc.types import Floats1d


class GradientTree:
    """Pairwise sum of flat gradients, as a binary counter: equal-sized partial
    sums are added as soon as there are two of them.

        ((g0 + g1) + (g2 + g3)) + g4
    """

    def __init__(self) -> None:
        self._partial: List[Tuple[int, Floats1d]] = []

    def add(self, gradient: Floats1d) -> None:
        """Take in the gradient of the next microbatch; it is copied.

        gradient (Floats1d): Shape (n_parameters,), float32.
        """
        size, total = 1, gradient.copy()
        while self._partial and self._partial[-1][0] == size:
            size, total = size * 2, self._partial.pop()[1] + total
        self._partial.append((size, total))

    def take(self, into: Floats1d) -> None:
        """Write the sum of all microbatches into a vector and start afresh.

        into (Floats1d): Shape (n_parameters,), float32.
        RAISES (ValueError): If nothing was added.
        """
        if not self._partial:
            raise ValueError("no gradient was added since the last take()")
        total = self._partial.pop()[1]
        while self._partial:
            total = self._partial.pop()[1] + total
        into[:] = total
