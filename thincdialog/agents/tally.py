"""Counts and losses that all copies of a learning agent share."""

from collections import Counter
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..errors import TrainingError
from ..examples.batch import Batch
from ..metrics import AverageMetric, Metric, SumMetric
from ..metrics.exact import exact_sum
from ..metrics.metric import known_means
from ..models.gradient_sum import GradientSum
from ..ops.later import MOST_WAITING, Number, add_up, settle
from ..protocol import StepReport

# Counts that are reported as fractions, and the counts that they are divided by. Lower is better
# for all.
_SHARES = {
    "truncated_contexts": "contexts",
    "truncated_labels": "labels",
    "truncated_context_tokens": "truncated_contexts",
    "truncated_label_tokens": "truncated_labels",
}

REPORTED = ("loss", "tokens", "padding_fraction", *_SHARES)


class LossTotals:
    """Add up losses and right answers.

    losses (List[Number]): Sums of losses (nats).
    weight (int): Number of losses in the sums.
    n_right (List[Number]): Numbers of right answers, out of ``n_judged`` examples.
    """

    def __init__(self) -> None:
        self.losses: List[Number] = []
        self.weight = 0
        self.n_right: List[Number] = []
        self.n_judged = 0

    def add(self, other: "LossTotals") -> None:
        self.losses.extend(other.losses)
        self.weight += other.weight
        self.n_right.extend(other.n_right)
        if len(self.n_right) >= MOST_WAITING:
            self.n_right = [sum(settle(self.n_right))]
        self.n_judged += other.n_judged


class Tally:
    """Count the examples, losses and tokens of training or of an evaluation. The counts since the
    last update of the weights (``clear`` drops them) make up the next step; the counts since
    ``reset``, including that step, make up the report.

    examples (int): Number of examples trained on since the last update.
    learned (LossTotals): Losses of these examples.
    unit (str): Unit of these losses: "examples" or "tokens".
    counts (Counter): Counts of the texts read: "tokens", "cells" (tokens with padding) and the
        counts of a ``TextEncoder``.
    microbatches (Optional[GradientSum]): Gradients of the step's microbatches except the last, if
        there are several.
    packs (List[Tuple[Any, int]]): For agents with compiled steps: the packs to train on, with their
        numbers of examples.
    """

    unit = "examples"

    def __init__(self) -> None:
        self.counts: Counter = Counter()
        self.clear()
        self.reset()

    def reset(self) -> None:
        """Start a new report. Losses since the last update are kept."""
        if not self.examples:
            self.clear()
        self._reported = LossTotals()
        self._counts: Counter = Counter()

    def clear(self) -> None:
        """Drop the counts since the last update."""
        self.examples = 0
        self.learned = LossTotals()
        self.counts.clear()
        self.microbatches: Optional[GradientSum] = None
        self.packs: List[Tuple[Any, int]] = []
        self._batches: List[Batch] = []

    def add_batch(self, batch: Batch) -> None:
        """Count the examples of a batch that was trained on."""
        self._batches.append(batch)
        self.examples += len(batch.rows)

    def add_losses(self, total: Number, weight: int, unit: str = "examples") -> None:
        """Count the losses of a batch that was trained on.

        total (Number): Sum of the losses (nats).
        weight (int): Number of losses in the sum.
        unit (str): Unit of the losses: "examples" or "tokens".
        RAISES (ValueError): If a step has losses of both units.
        """
        if self.learned.weight and unit != self.unit:
            raise ValueError(f"a step has losses of {self.unit} and of {unit}")
        self.unit = unit
        self.learned.losses.append(total)
        self.learned.weight += weight

    def add_judged(self, n_right: Number, n_judged: int) -> None:
        """Count the examples that the agent would have answered correctly."""
        self.learned.n_right.append(n_right)
        self.learned.n_judged += n_judged

    def add_answers(self, losses: Sequence[Optional[float]]) -> None:
        """Count the losses of examples that were only answered; None for examples without a
        loss."""
        known = [loss for loss in losses if loss is not None]
        self._reported.losses.extend(known)
        self._reported.weight += len(known)

    def mean_loss(self) -> float:
        """Return the mean loss since the last update, which must have had at least one loss."""
        return float(add_up(self.learned.losses)) / self.learned.weight

    def close_step(self, gradient_norm: Number) -> StepReport:
        """Return the report of the current step, and start the next step."""
        learned, losses = self.learned, self.learned.losses
        report = StepReport(
            self.examples,
            losses[0] if len(losses) == 1 else add_up(losses),
            learned.weight,
            self.unit,
            gradient_norm,
            dict(self.counts),
        )
        self._reported.add(learned)
        self._counts.update(self.counts)
        self.clear()
        return report

    def report(self) -> Dict[str, Metric]:
        """Return the mean loss (nats); in training the accuracy, if it is known; and if text was
        read, tokens, padding (the fraction of cells without a token) and truncation. Means of no
        values are left out."""
        totals, counts = LossTotals(), self._counts + self.counts
        for each in (self._reported, self.learned):
            totals.add(each)
        n_right = int(sum(settle(totals.n_right)))
        report: Dict[str, Metric] = {
            "loss": AverageMetric(exact_sum(settle(totals.losses)), totals.weight),
            "accuracy": AverageMetric(n_right, totals.n_judged),
        }
        if counts:
            n_tokens, n_cells = counts["tokens"], counts["cells"]
            report["tokens"] = SumMetric(n_tokens)
            report["padding_fraction"] = AverageMetric(n_cells - n_tokens, n_cells)
            for name, whole in _SHARES.items():
                report[name] = AverageMetric(counts[name], counts[whole])
        return known_means(report)

    @property
    def ids(self) -> List[Optional[str]]:
        """Ids of the examples trained on since the last update."""
        return self.ids_later()()

    def ids_later(self) -> Callable[[], List[Optional[str]]]:
        """Return a function that returns the ids, even after the step is closed. Reading them takes
        time, so they are read only when needed."""
        batches = self._batches
        return lambda: [id for batch in batches for id in batch.ids()]


def not_finite(what: str, ids: Sequence[Optional[str]], n_skipped: int = 0) -> TrainingError:
    """Make the error for a loss or gradient that is inf or nan.

    what (str): "loss" or "gradient".
    ids (Sequence[Optional[str]]): Ids of the examples that it comes from.
    n_skipped (int): Number of steps whose gradients were not used, because a device reports the
        error with a delay.
    """
    skipped = ""
    if n_skipped:
        many = f"gradients of {n_skipped} steps were"
        skipped = f" The {many if n_skipped > 1 else 'gradient of 1 step was'} not used."
    shown = ", ".join(map(str, ids[:64])) + (f", ... ({len(ids)} in all)" if len(ids) > 64 else "")
    return TrainingError(
        f"The {what} is not finite; training stopped.{skipped} Examples of the batch: {shown}. "
        "Try a lower learn_rate, a smaller grad_clip, or look at these examples."
    )
