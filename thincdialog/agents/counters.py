"""What all copies of a learning agent count together."""

from typing import Dict, List, Mapping, Optional

import numpy as np

from ..examples.batch import Batch
from ..metrics import AverageMetric, Metric, SumMetric
from ..protocol import StepReport


class Counters:
    """Since the last update of the weights; in an evaluation, since the last reset.

    examples (int): Learnt from.
    loss (AverageMetric): Loss per example (nats).
    tokens (int): Tokens read.
    cells (int): Of the rectangles that held them; as many as tokens without padding.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start afresh."""
        self.examples = self.tokens = self.cells = 0
        self.loss = AverageMetric(0, 0)
        self._batches: List[Batch] = []

    @property
    def ids(self) -> List[Optional[str]]:
        """Of the examples learnt from."""
        return [id for batch in self._batches for id in batch.ids()]

    def learn(self, batch: Batch, loss: float = 0.0, n_losses: int = 0) -> None:
        """A batch was learnt, or waits for the update.

        loss (float): Sum of the losses that are known.
        n_losses (int): How many these are.
        """
        self.loss = self.loss + AverageMetric(loss, n_losses)
        self._batches.append(batch)
        self.examples += len(batch)

    def count_tokens(self, lengths: np.ndarray, padded: bool) -> None:
        """A batch is read.

        lengths (np.ndarray): Tokens of each row.
        padded (bool): Whether they are laid out as a rectangle.
        """
        if len(lengths):
            n_tokens = int(lengths.sum())
            self.tokens += n_tokens
            self.cells += int(lengths.max()) * len(lengths) if padded else n_tokens

    def step(self, gradient_norm: float, of_text: Mapping[str, int]) -> StepReport:
        """The weights were updated; start afresh.

        of_text (Mapping[str, int]): What else was counted.
        """
        counts = {"tokens": self.tokens, "cells": self.cells, **of_text}
        report = StepReport(self.examples, self.loss, gradient_norm=gradient_norm, counts=counts)
        self.reset()
        return report

    def report(self, of_text: Optional[Mapping[str, Metric]]) -> Dict[str, Metric]:
        """Loss per example (nats); where text is read, tokens and padding (the share of
        cells that hold no token), too. Means of nothing are left out.

        of_text (Optional[Mapping[str, Metric]]): What else is known of it; None if there
            is none.
        """
        report: Dict[str, Metric] = {"loss": self.loss}
        if of_text is not None:
            report["tokens"] = SumMetric(self.tokens)
            report["padding_fraction"] = AverageMetric(self.cells - self.tokens, self.cells)
            report.update(of_text)
        return {name: metric for name, metric in report.items() if not _is_empty(metric)}


def _is_empty(metric: Metric) -> bool:
    return isinstance(metric, AverageMetric) and not metric.denominator
