"""Batches of a number of cells that the model really allocates."""

from ..registry import registry
from .batcher import Batcher
from .sizes import SizeT, check_size
from .words import BudgetBatcher, Oversize


@registry.batchers("thincdialog.Padded.v1")
def Padded(budget: SizeT, buffer: int = 256, oversize: Oversize = "alone") -> Batcher:
    """Batches of rows of like length within a budget of the cells that the model will
    allocate: a rectangle for each side that it pads, context and label by themselves, and
    the tokens alone for a side that it reads without padding. For a model that pads
    nothing (bags, CNNs, BiLSTMs here), lengths do not matter: batches take the rows as
    they come until the tokens are as many as the budget. (Of what a ranker chooses from in
    training, the labels of the batch count, other candidates do not.)

    budget (SizeT): Cells of a batch, 1 or more, or a schedule of it.
    buffer (int): Batches' worth of rows to choose from, 1 or more.
    oversize (str): A row of more tokens than the budget is given "alone", has its longest
        part shortened ("truncate"), or is an "error".
    RAISES (ConfigError): If budget or buffer is less than 1.
    """
    sizes = check_size("thincdialog.Padded.v1", "budget", budget, buffer)
    return BudgetBatcher(sizes, None, buffer, oversize)
