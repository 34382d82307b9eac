"""What all copies of a learning agent count together."""

from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from ..metrics import AverageMetric, Metric, SumMetric


class Counters:
    """Since the last update of the weights, and since the last reset of the metrics.

    examples (int): Learnt from since the last update.
    loss (AverageMetric): Loss per example since the reset.
    tokens (int): Tokens read since the reset.
    cells (int): Of the rectangles that held them; as many as tokens without padding.
    """

    def __init__(self) -> None:
        self.updated()
        self.reset_metrics()

    def updated(self) -> None:
        """The weights were updated."""
        self.examples = 0
        self._ids: List[Optional[str]] = []
        self._more_ids: List[Sequence[Optional[str]]] = []

    @property
    def ids(self) -> List[Optional[str]]:
        """Of the examples learnt from since the last update."""
        for ids in self._more_ids:
            self._ids.extend(ids)
        self._more_ids = []
        return self._ids

    def count_tokens(self, lengths: np.ndarray, padded: bool) -> None:
        """A batch is read.

        lengths (np.ndarray): Tokens of each row.
        padded (bool): Whether they are laid out as a rectangle.
        """
        if len(lengths):
            n_tokens = int(lengths.sum())
            self.tokens += n_tokens
            self.cells += int(lengths.max()) * len(lengths) if padded else n_tokens

    def count_ragged(self, n_tokens: int) -> None:
        """A batch is read that is laid out without padding."""
        self.tokens += n_tokens
        self.cells += n_tokens

    def reset_metrics(self) -> None:
        """Start the metrics afresh."""
        self.loss = AverageMetric(0, 0)
        self.tokens = 0
        self.cells = 0

    def learnt(self, ids: Sequence[Optional[str]], loss: float) -> None:
        """A batch's gradient was added.

        ids (Sequence[Optional[str]]): Of its examples.
        loss (float): Sum of theirs.
        """
        self.loss = self.loss + AverageMetric(loss, len(ids))
        self.read(ids)

    def read(self, ids: Sequence[Optional[str]]) -> None:
        """Examples count for the next update.

        ids (Sequence[Optional[str]]): Theirs, looked at only to name them in an error.
        """
        self._more_ids.append(ids)
        self.examples += len(ids)

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

    def state(self) -> Dict[str, Any]:
        """The metrics, as JSON values; nothing of an update that is still to come."""
        return {
            "loss": self.loss.numerator.state(),
            "examples": self.loss.denominator.state(),
            "tokens": self.tokens,
            "cells": self.cells,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what ``state`` gave."""
        self.updated()
        self.loss = AverageMetric(0, 0)
        self.loss.numerator.restore(state["loss"])
        self.loss.denominator.restore(state["examples"])
        self.tokens = state["tokens"]
        self.cells = state["cells"]


def _is_empty(metric: Metric) -> bool:
    return isinstance(metric, AverageMetric) and not metric.denominator
