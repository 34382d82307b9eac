"""Batches within a budget of the cells that the model allocates."""

from ..registry import registry
from .batcher import Batcher
from .sizes import SizeT, check_size
from .words import BudgetBatcher, Oversize


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
