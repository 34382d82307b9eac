"""What all copies of a learning agent count together."""

from collections import Counter
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..errors import TrainingError
from ..examples.batch import Batch
from ..metrics import AverageMetric, Metric, SumMetric
from ..models.gradient_tree import GradientTree
from ..protocol import StepReport

# Means in reports, and the counts that they divide; all are better lower.
_SHARES: Dict[str, Tuple[str, str]] = {
    "truncated_contexts": ("truncated_contexts", "contexts"),
    "truncated_labels": ("truncated_labels", "labels"),
    "truncated_context_tokens": ("truncated_context_tokens", "truncated_contexts"),
    "truncated_label_tokens": ("truncated_label_tokens", "truncated_labels"),
}


class Counters:
    """Since the last update of the weights; in an evaluation, since the last reset.

    examples (int): Learnt from.
    loss (AverageMetric): Loss per example (nats).
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
        self.loss = AverageMetric()
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
        self.loss.numerator.add(total)
        self.loss.denominator.add(n)

    def step(self, gradient_norm: float) -> StepReport:
        """The weights were updated; start afresh."""
        counts = dict(self.counts)
        report = StepReport(self.examples, self.loss, gradient_norm=gradient_norm, counts=counts)
        self.reset()
        return report

    def report(self) -> Dict[str, Metric]:
        """Loss per example (nats); where text was read, tokens and padding (the share of
        cells that hold no token) and what was truncated, too. Means of nothing are left out."""
        counts = self.counts
        report: Dict[str, Metric] = {"loss": self.loss}
        if counts:
            n_tokens, n_cells = counts["tokens"], counts["cells"]
            report["tokens"] = SumMetric(n_tokens)
            report["padding_fraction"] = AverageMetric(n_cells - n_tokens, n_cells)
            for name, (part, whole) in _SHARES.items():
                report[name] = AverageMetric(counts[part], counts[whole])
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
