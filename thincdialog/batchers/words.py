"""Batches of a number of words."""

from typing import List

import numpy as np

from ..registry import registry
from .batcher import Batcher
from .budget import BudgetBatcher, Oversize, divide_by_cells
from .lengths import Lengths
from .sizes import Sizes, SizeT, check_size


@registry.batchers("thincdialog.Words.v1")
def Words(
    budget: SizeT, padding: bool = True, buffer: int = 256, oversize: Oversize = "alone"
) -> Batcher:
    """Batches of rows of like length that grow until a budget of words is full. (ParlAI's
    dynamic batching, "full".)

    Words are counted as the agent reads them, tokens if it has any, in context and label.
    With padding (the default) a batch takes its rows times its longest context, and the
    same of the label: the cells of its rectangles, which are what memory and time pay
    for. Without, only the words themselves count, and long rows with short ones can
    make rectangles of any size.

    Twelve quotes of 8, 10, 17, 2, 2, 38, 6, 12, 6, 12, 13 and 5 words and a budget of 80
    give, with padding, (38, 17) (13, 12, 12, 10, 8, 6) (6, 5, 2, 2), which is 76, 78 and
    24 cells; without, (38, 17, 13, 12) and (12, 10, 8, 6, 6, 5, 2, 2), which is 80 and 51
    words, but 152 and 96 cells.

    budget (SizeT): Words of a batch, 1 or more, or a schedule of it.
    padding (bool): Whether padding counts.
    buffer (int): Batches' worth of rows to choose from, 1 or more.
    oversize (str): A row of more words than the budget is given "alone", has its longest
        part shortened ("truncate"), or is an "error".
    RAISES (ConfigError): If budget or buffer is less than 1.
    """
    sizes = check_size("thincdialog.Words.v1", "budget", budget, buffer)
    return WordsBatcher(sizes, padding, buffer, oversize)


class WordsBatcher(BudgetBatcher):
    """See ``Words``."""

    def __init__(self, sizes: Sizes, padding: bool, buffer: int, oversize: Oversize):
        super().__init__(sizes, buffer, oversize)
        self.padding = padding

    def divide(self, lengths: Lengths, limit: int) -> List[np.ndarray]:
        """All fields are rectangles, or none is."""
        return divide_by_cells(lengths, [self.padding] * lengths.counts.shape[1], limit)
