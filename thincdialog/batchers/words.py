"""Batches within a budget of words."""

from typing import List, Literal, Optional

import numpy as np

from ..registry import registry
from .batcher import Batcher
from .cuts import cut_line, cut_sorted
from .lengths import Lengths
from .like_lengths import longest_first, order_by_length
from .sizes import Sizes, SizeT, check_size

Oversize = Literal["alone", "truncate", "error"]


@registry.batchers("thincdialog.Words.v1")
def Words(
    budget: SizeT, padding: bool = True, buffer: int = 256, oversize: Oversize = "alone"
) -> Batcher:
    """Make batches of rows of similar lengths, each as large as a budget of words allows. This is
    ParlAI's dynamic batching, "full".

    Words are counted as the agent reads them (tokens, if it has a tokenizer), in contexts and
    labels. With padding (the default), a batch takes its number of rows times the length of its
    longest context, and likewise for its labels: these are the cells that take memory and time.
    Without padding, only the words are counted, so a batch of long and short rows can have any
    number of cells.

    For example, texts of 8, 10, 17, 2, 2, 38, 6, 12, 6, 12, 13 and 5 words with a budget of 80
    make, with padding, the batches (38, 17) (13, 12, 12, 10, 8, 6) (6, 5, 2, 2) of 76, 78 and 24
    cells; without padding, (38, 17, 13, 12) (12, 10, 8, 6, 6, 5, 2, 2) of 80 and 51 words, but 152
    and 96 cells.

    budget (SizeT): Maximum number of words of a batch, 1 or more, or a schedule of this number.
    padding (bool): Whether padding counts.
    buffer (int): Number of batches to read rows for at a time, 1 or more.
    oversize (str): How to treat a row with more words than the budget: "alone" puts it into a
        batch of its own, "truncate" shortens its longest part, "error" raises an error.
    RAISES (ConfigError): If budget or buffer is less than 1.
    """
    sizes = check_size("thincdialog.Words.v1", "budget", budget, buffer)
    return BudgetBatcher(sizes, padding, buffer, oversize)


@registry.batchers("thincdialog.Padded.v1")
def Padded(budget: SizeT, buffer: int = 256, oversize: Oversize = "alone") -> Batcher:
    """Make batches of rows of similar lengths within a budget of the cells that the model
    allocates.

    A side of the batch (contexts or labels) that the model pads takes a rectangle of cells; a side
    that it reads without padding takes one cell per token. For a model without padding (bags, CNNs
    and BiLSTMs here), lengths do not matter, so rows keep their order and fill batches up to the
    budget. For a ranker, the labels of the batch count, but other candidates do not.

    budget (SizeT): Maximum number of cells of a batch, 1 or more, or a schedule of this number.
    buffer (int): Number of batches to read rows for at a time, 1 or more.
    oversize (str): How to treat a row with more tokens than the budget: "alone" puts it into a
        batch of its own, "truncate" shortens its longest part, "error" raises an error.
    RAISES (ConfigError): If budget or buffer is less than 1.
    """
    sizes = check_size("thincdialog.Padded.v1", "budget", budget, buffer)
    return BudgetBatcher(sizes, None, buffer, oversize)


class BudgetBatcher(Batcher):
    """Plan batches of rows of similar lengths within a budget of cells.

    sizes (Sizes): The budget at each step.
    padding (Optional[bool]): Whether all fields count as padded, or none; if None, the fields that
        the agent pads.
    buffer (int): Number of batches to read rows for at a time, 1 or more.
    oversize (str): How to treat a row that exceeds the budget (see ``Words``).
    """

    unit = "words"

    def __init__(self, sizes: Sizes, padding: Optional[bool], buffer: int, oversize: Oversize):
        super().__init__(sizes, buffer)
        self.padding = padding
        self.oversize = oversize

    def plan(self, lengths: Lengths, limit: int, rng: np.random.Generator) -> List[np.ndarray]:
        """Put each row that exceeds the limit into a batch of its own, and divide the others."""
        is_over = lengths.totals > limit
        if not is_over.any():
            return self._divide(lengths, limit)
        rest = np.flatnonzero(~is_over)
        batches = [np.array([row]) for row in np.flatnonzero(is_over)]
        if len(rest):
            batches += [rest[batch] for batch in self._divide(lengths.take(rest), limit)]
        return batches

    def _divide(self, lengths: Lengths, limit: int) -> List[np.ndarray]:
        """Divide rows, none of which exceeds the limit, into batches."""
        n_fields = len(lengths.padded)
        padded = lengths.padded if self.padding is None else [self.padding] * n_fields
        # A row without words counts as one cell; otherwise, a batch could have any number of them.
        counts = lengths.counts.copy()
        counts[:, 0] += counts.sum(axis=1) == 0
        rectangles = counts[:, np.array(padded)]
        if (np.ptp(rectangles, axis=0) > 0).sum() > 1:
            order = order_by_length(rectangles, cells=limit)
            edges = cut_line(counts[order], padded, limit)
        else:
            order = np.arange(len(counts))
            if any(padded) or self.padding is False:
                order = longest_first((rectangles if any(padded) else counts).sum(axis=1))
            edges = cut_sorted(counts[order], padded, limit)
        return [order[start:stop] for start, stop in zip(edges, edges[1:])]
