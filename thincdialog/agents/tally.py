"""What all copies of a learning agent count together."""

from collections import Counter
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..errors import TrainingError
from ..examples.batch import Batch
from ..metrics import AverageMetric, Metric, SumMetric
from ..metrics.exact import exact_sum
from ..models.gradient_sum import GradientSum
from ..ops.later import MOST_WAITING, Number, add_up, settle
from ..protocol import StepReport

# Counts that are reported as means, and what they are divided by; all are better lower.
_SHARES = {
    "truncated_contexts": "contexts",
    "truncated_labels": "labels",
    "truncated_context_tokens": "truncated_contexts",
    "truncated_label_tokens": "truncated_labels",
}

REPORTED = ("loss", "tokens", "padding_fraction", *_SHARES)


class LossTotals:
    """Losses and right answers.

    losses (List[Number]): Sums of losses (nats).
    weight (int): Of how many losses.
    n_right (List[Number]): Right answers, of ``n_judged``.
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
    """What was learned since the last update of the weights (``clear`` drops it), and what
    ``report`` tells since ``reset``: of the updates made and of the one to come, or of an
    evaluation.

    examples (int): Learned from since the last update.
    learned (LossTotals): Of them.
    unit (str): The unit of its losses: "examples" or "tokens".
    counts (Counter): Of the texts that were read: "tokens", the "cells" of the rectangles that
        held them (as many as tokens without padding), and what a ``TextEncoder`` counts.
    microbatches (Optional[GradientSum]): Gradients of the step's microbatches but the last,
        if there are several.
    packs (List[Tuple[Any, int]]): Where a kernel makes the step: what it is to learn from, and
        of how many examples.
    """

    unit = "examples"

    def __init__(self) -> None:
        self.counts: Counter = Counter()
        self.clear()
        self.reset()

    def reset(self) -> None:
        """Start a new report. Losses since the last update stay."""
        if not self.examples:
            self.clear()
        self._reported = LossTotals()
        self._counts: Counter = Counter()

    def clear(self) -> None:
        """Drop what was learned since the last update."""
        self.examples = 0
        self.learned = LossTotals()
        self.counts.clear()
        self.microbatches: Optional[GradientSum] = None
        self.packs: List[Tuple[Any, int]] = []
        self._batches: List[Batch] = []

    def add_batch(self, batch: Batch) -> None:
        """Count the examples of a batch that was learned."""
        self._batches.append(batch)
        self.examples += len(batch.rows)

    def add_losses(self, total: Number, weight: int, unit: str = "examples") -> None:
        """Count losses of what was learned.

        RAISES (ValueError): If a step has losses of examples and of tokens.
        """
        if self.learned.weight and unit != self.unit:
            raise ValueError(f"a step has losses of {self.unit} and of {unit}")
        self.unit = unit
        self.learned.losses.append(total)
        self.learned.weight += weight

    def add_judged(self, n_right: Number, n_judged: int) -> None:
        """Count what the agent would have answered rightly."""
        self.learned.n_right.append(n_right)
        self.learned.n_judged += n_judged

    def add_answers(self, losses: Sequence[Optional[float]]) -> None:
        """Count the losses of examples that nothing is learned from; None where there is none."""
        known = [loss for loss in losses if loss is not None]
        self._reported.losses.extend(known)
        self._reported.weight += len(known)

    def mean_loss(self) -> float:
        """Of what was learned since the last update, one loss or more."""
        return float(add_up(self.learned.losses)) / self.learned.weight

    def close_step(self, gradient_norm: Number) -> StepReport:
        """Report what was learned, and start the next step."""
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
        """The mean loss (nats); in training the accuracy, where it is known; where text was
        read, tokens and padding (the share of cells that hold no token) and what was truncated,
        too. Means of nothing are left out."""
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
        return {
            name: metric
            for name, metric in report.items()
            if not isinstance(metric, AverageMetric) or metric.denominator
        }

    @property
    def ids(self) -> List[Optional[str]]:
        """Of the examples learned from since the last update."""
        return self.ids_later()()

    def ids_later(self) -> Callable[[], List[Optional[str]]]:
        """The function that gives them, after the step is closed, too: to read them takes time."""
        batches = self._batches
        return lambda: [id for batch in batches for id in batch.ids()]


def not_finite(what: str, ids: Sequence[Optional[str]], n_skipped: int = 0) -> TrainingError:
    """The error for a loss or gradient that is inf or nan.

    what (str): "loss" or "gradient".
    ids (Sequence[Optional[str]]): Of the examples it comes from.
    n_skipped (int): Steps whose gradients were not used, as a device tells late.
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
