"""What all copies of a learning agent count together."""

from typing import Any, Dict, List, Mapping, Optional

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
