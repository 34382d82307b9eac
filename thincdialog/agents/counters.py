"""What all copies of a learning agent count together."""

import math
from array import array
from collections import Counter
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..errors import TrainingError
from ..examples.batch import Batch
from ..metrics import AverageMetric, Metric, SumMetric
from ..metrics.exact import exact_sum
from ..models.gradient_tree import GradientTree
from ..protocol import StepReport

# Counts that are reported as means, and what they are divided by; all are better lower.
_SHARES = {
    "truncated_contexts": "contexts",
    "truncated_labels": "labels",
    "truncated_context_tokens": "truncated_contexts",
    "truncated_label_tokens": "truncated_labels",
}

REPORTED = ("loss", "tokens", "padding_fraction", *_SHARES)


class Counters:
    """Since the last update of the weights; in an evaluation, since the last reset.

    examples (int): Learnt from.
    losses (array): Sums of losses (nats), of batches or of examples.
    n_losses (int): Of how many examples.
    counts (Counter): Of the texts that were read: "tokens", the "cells" of the rectangles that
        held them (as many as tokens without padding), and what a ``TextEncoder`` counts.
    microbatches (Optional[GradientTree]): Gradients of the step's microbatches but the last,
        if there are several.
    packs (List[Tuple[Any, int]]): Where a kernel makes the step: what it is to learn from, and
        of how many examples.
    """

    def __init__(self) -> None:
        self.counts: Counter = Counter()
        self.reset()

    def reset(self) -> None:
        """Start afresh."""
        self.examples = 0
        self.losses, self.n_losses = array("d"), 0
        self.counts.clear()
        self.microbatches: Optional[GradientTree] = None
        self.packs: List[Tuple[Any, int]] = []
        self._batches: List[Batch] = []

    def learn(self, batch: Batch) -> None:
        """A batch was learnt, or waits for the update."""
        self._batches.append(batch)
        self.examples += len(batch.rows)

    def add_loss(self, total: float, n: int = 1) -> None:
        """Losses of n examples are known."""
        self.losses.append(total)
        self.n_losses += n

    def mean_loss(self) -> float:
        """Of the examples whose losses are known, one or more."""
        return math.fsum(self.losses) / self.n_losses

    def step(self, gradient_norm: float) -> StepReport:
        """The weights were updated; start afresh."""
        report = StepReport(
            self.examples,
            math.fsum(self.losses),
            self.n_losses,
            gradient_norm=gradient_norm,
            counts=dict(self.counts),
        )
        self.reset()
        return report

    def report(self) -> Dict[str, Metric]:
        """Loss per example (nats); where text was read, tokens and padding (the share of
        cells that hold no token) and what was truncated, too. Means of nothing are left out."""
        counts = self.counts
        loss = AverageMetric(exact_sum(self.losses), self.n_losses)
        report: Dict[str, Metric] = {"loss": loss}
        if counts:
            n_tokens, n_cells = counts["tokens"], counts["cells"]
            report["tokens"] = SumMetric(n_tokens)
            report["padding_fraction"] = AverageMetric(n_cells - n_tokens, n_cells)
            for name, whole in _SHARES.items():
                report[name] = AverageMetric(counts[name], counts[whole])
        return {
            name: metric
            for name, metric in report.items()
            if not isinstance(metric, AverageMetric) or metric.denominator
        }

    @property
    def ids(self) -> List[Optional[str]]:
        """Of the examples learnt from."""
        return [id for batch in self._batches for id in batch.ids()]


def not_finite(what: str, ids: Sequence[Optional[str]]) -> TrainingError:
    """The error for a loss or gradient that is inf or nan.

    what (str): "loss" or "gradient".
    ids (Sequence[Optional[str]]): Of the examples it comes from.
    """
    shown = ", ".join(map(str, ids[:64])) + (f", ... ({len(ids)} in all)" if len(ids) > 64 else "")
    return TrainingError(
        f"The {what} is not finite; training stopped. Examples of the batch: {shown}. "
        "Try a lower learn_rate, a smaller grad_clip, or look at these examples."
    )
