"""Batches that grow until a budget is spent; Words and Padded are of this kind."""

from typing import List, Literal, Sequence

import numpy as np

from .batcher import Batcher
from .cuts import cut_line, cut_sorted
from .lengths import Lengths, row_sums
from .like_lengths import longest_first, order_by_length
from .sizes import Sizes

Oversize = Literal["alone", "truncate", "error"]


class BudgetBatcher(Batcher):
    """Batches within a budget of cells, each filled with rows of like length.

    sizes (Sizes): The budget.
    buffer (int): Batches' worth of rows to choose from.
    oversize (str): What becomes of a row beyond the budget.
    """

    unit = "words"

    def __init__(self, sizes: Sizes, buffer: int, oversize: Oversize):
        super().__init__(sizes, buffer)
        self.oversize = oversize

    def plan(self, lengths: Lengths, limit: int, rng: np.random.Generator) -> List[np.ndarray]:
        """Rows beyond the limit alone, all others divided up by ``divide``."""
        totals = lengths.totals
        if totals.max() <= limit:
            return self.divide(lengths, limit)
        rest = np.flatnonzero(totals <= limit)
        batches = [np.array([row]) for row in np.flatnonzero(totals > limit)]
        if len(rest):
            batches += [rest[batch] for batch in self.divide(lengths.take(rest), limit)]
        return batches

    def divide(self, lengths: Lengths, limit: int) -> List[np.ndarray]:
        """Divide rows that are all within the limit."""
        raise NotImplementedError


def divide_by_cells(lengths: Lengths, padded: Sequence[bool], limit: int) -> List[np.ndarray]:
    """Batches of rows of like length, within a limit of cells.

    padded (Sequence[bool]): Which fields count as rectangles.
    """
    # A row of no words takes up a cell, too: else a batch had no end.
    counts = lengths.counts.copy()
    counts[:, 0] += row_sums(counts) == 0
    rectangles = counts[:, np.array(padded)]
    if (np.ptp(np.ascontiguousarray(rectangles.T), axis=1) > 0).sum() > 1:
        order = order_by_length(rectangles, cells=limit)
        edges = cut_line(counts[order], padded, limit)
    else:
        sorted_by = rectangles if rectangles.shape[1] else counts
        order = longest_first(row_sums(sorted_by))
        edges = cut_sorted(counts[order], padded, limit)
    return [order[start:stop] for start, stop in zip(edges, edges[1:])]
