"""Batches of a number of words."""

from typing import List, Literal, Optional

import numpy as np

from ..registry import registry
from .batcher import Batcher
from .cuts import cut_line, cut_sorted
from .lengths import Lengths, row_sums
from .like_lengths import longest_first, order_by_length
from .sizes import Sizes, SizeT, check_size

Oversize = Literal["alone", "truncate", "error"]


@registry.batchers("thincdialog.Words.v1")
def Words(
    budget: SizeT, padding: bool = True, buffer: int = 256, oversize: Oversize = "alone"
) -> Batcher:
    """Batches of rows of like length that grow until a budget of words is full. (ParlAI's
    dynamic batching, "full".)

    Words are counted as the agent reads them, tokens if it has any, in context and label.
    With padding (the default) a batch takes its rows times its longest context, and the
    same of the label: the cells of its rectangles, which memory and time pay for. Without,
    only the words count, and long rows with short ones can make rectangles of any size.

    Quotes of 8, 10, 17, 2, 2, 38, 6, 12, 6, 12, 13 and 5 words and a budget of 80 give, with
    padding, (38, 17) (13, 12, 12, 10, 8, 6) (6, 5, 2, 2): 76, 78 and 24 cells; without,
    (38, 17, 13, 12) (12, 10, 8, 6, 6, 5, 2, 2): 80 and 51 words, but 152 and 96 cells.

    budget (SizeT): Words of a batch, 1 or more, or a schedule of it.
    padding (bool): Whether padding counts.
    buffer (int): Batches' worth of rows to choose from, 1 or more.
    oversize (str): A row of more words than the budget is given "alone", has its longest
        part shortened ("truncate"), or is an "error".
    RAISES (ConfigError): If budget or buffer is less than 1.
    """
    sizes = check_size("thincdialog.Words.v1", "budget", budget, buffer)
    return BudgetBatcher(sizes, padding, buffer, oversize)


class BudgetBatcher(Batcher):
    """Batches within a budget of cells, each filled with rows of like length.

    sizes (Sizes): The budget.
    padding (Optional[bool]): Whether all fields count as rectangles; None: as the agent says.
    buffer (int): Batches' worth of rows to choose from.
    oversize (str): What becomes of a row beyond the budget.
    """

    unit = "words"

    def __init__(self, sizes: Sizes, padding: Optional[bool], buffer: int, oversize: Oversize):
        super().__init__(sizes, buffer)
        self.padding = padding
        self.oversize = oversize

    def plan(self, lengths: Lengths, limit: int, rng: np.random.Generator) -> List[np.ndarray]:
        """Rows beyond the limit alone, all others divided up."""
        is_over = lengths.totals > limit
        if not is_over.any():
            return self._divide(lengths, limit)
        rest = np.flatnonzero(~is_over)
        batches = [np.array([row]) for row in np.flatnonzero(is_over)]
        if len(rest):
            batches += [rest[batch] for batch in self._divide(lengths.take(rest), limit)]
        return batches

    def _divide(self, lengths: Lengths, limit: int) -> List[np.ndarray]:
        """Divide rows that are all within the limit."""
        n_fields = len(lengths.padded)
        padded = lengths.padded if self.padding is None else [self.padding] * n_fields
        # A row of no words takes up a cell, too: else a batch had no end.
        counts = lengths.counts.copy()
        counts[:, 0] += row_sums(counts) == 0
        rectangles = counts[:, np.array(padded)]
        if (np.ptp(np.ascontiguousarray(rectangles.T), axis=1) > 0).sum() > 1:
            order = order_by_length(rectangles, cells=limit)
            edges = cut_line(counts[order], padded, limit)
        else:
            order = np.arange(len(counts))
            if any(padded) or self.padding is False:
                order = longest_first(row_sums(rectangles if any(padded) else counts))
            edges = cut_sorted(counts[order], padded, limit)
        return [order[start:stop] for start, stop in zip(edges, edges[1:])]
