"""What all copies of a learning agent count together."""

from typing import List, Optional

import numpy as np

from ..metrics import AverageMetric


class Counters:
    """Since the last update of the weights, and since the last reset of the metrics.

    examples (int): Learnt from since the last update.
    ids (List[Optional[str]]): Of those examples, to name them in an error.
    loss (AverageMetric): Loss per example since the reset.
    tokens (int): Tokens read since the reset.
    cells (int): Of the rectangles that held them; as many as tokens without padding.
    """

    def __init__(self) -> None:
        self.examples = 0
        self.ids: List[Optional[str]] = []
        self.reset_metrics()

    def updated(self) -> None:
        """The weights were updated."""
        self.examples = 0
        self.ids = []

    def count_tokens(self, lengths: np.ndarray, padded: bool) -> None:
        """A batch is read.

        lengths (np.ndarray): Tokens of each row.
        padded (bool): Whether they are laid out as a rectangle.
        """
        if len(lengths):
            n_tokens = int(lengths.sum())
            self.tokens += n_tokens
            self.cells += int(lengths.max()) * len(lengths) if padded else n_tokens

    def reset_metrics(self) -> None:
        """Start the metrics afresh."""
        self.loss = AverageMetric(0, 0)
        self.tokens = 0
        self.cells = 0
