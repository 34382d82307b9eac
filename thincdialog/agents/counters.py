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


class Counters:
    """What waits for the next update of the weights (``clear`` drops it), and what is told
    since ``reset``: of the updates made and of the one to come, or of an evaluation.

    examples (int): Learnt from since the last update.
    losses (List[Number]): Their losses (nats), summed over batches.
    n_losses (int): Of how many of them.
    counts (Counter): Of the texts that were read: "tokens", the "cells" of the rectangles that
        held them (as many as tokens without padding), and what a ``TextEncoder`` counts.
    microbatches (Optional[GradientSum]): Gradients of the step's microbatches but the last,
        if there are several.
    batches (List[Batch]): What the examples are.
    packs (List[Tuple[Any, int]]): Where a kernel makes the step: what it is to learn from, and
        of how many examples.
    """

    def __init__(self) -> None:
        self.counts: Counter = Counter()
        self.clear()
        self.reset()

    def reset(self) -> None:
        """Start what is told afresh. What waits for an update still does."""
        if not self.examples:
            self.clear()
        self._told = _Told()

    def clear(self) -> None:
        """Forget what waits for an update."""
        self.examples = 0
        self.losses: List[Number] = []
        self.n_losses = 0
        self.n_right: List[Number] = []
        self.n_judged = 0
        self.counts.clear()
        self.microbatches: Optional[GradientSum] = None
        self.packs: List[Tuple[Any, int]] = []
        self.batches: List[Batch] = []

    def learn(self, batch: Batch) -> None:
        """A batch was learnt, or waits for the update."""
        self.batches.append(batch)
        self.examples += len(batch.rows)

    def add_loss(self, total: Number, n: int = 1) -> None:
        """Losses of n examples that wait for the update are known."""
        self.losses.append(total)
        self.n_losses += n

    def judge(self, n_right: Number, n: int) -> None:
        """It is known how many of n such examples the agent would have answered rightly."""
        self.n_right.append(n_right)
        self.n_judged += n

    def add_evaluation_loss(self, loss: float) -> None:
        """The loss of an example is known that nothing is learnt from."""
        self._told.losses.append(loss)
        self._told.n_losses += 1

    def mean_loss(self) -> float:
        """Of the examples that wait and whose losses are known, one or more."""
        return float(add_up(self.losses)) / self.n_losses

    def step(self, gradient_norm: Number) -> StepReport:
        """The weights were updated: nothing waits any more."""
        report = StepReport(
            self.examples,
            add_up(self.losses),
            self.n_losses,
            gradient_norm=gradient_norm,
            counts=dict(self.counts),
        )
        told = self._told
        told.losses.extend(self.losses)
        told.n_losses += self.n_losses
        told.n_right.extend(self.n_right)
        if len(told.n_right) >= MOST_WAITING:
            told.n_right = [sum(settle(told.n_right))]
        told.n_judged += self.n_judged
        told.counts.update(self.counts)
        self.clear()
        return report

    def report(self) -> Dict[str, Metric]:
        """Loss per example (nats); in training the accuracy, where it is known; where text was
        read, tokens and padding (the share of cells that hold no token) and what was truncated,
        too. Means of nothing are left out."""
        told = self._told
        counts = told.counts + self.counts
        losses = exact_sum(settle([*told.losses, *self.losses]))
        n_right = int(sum(settle([*told.n_right, *self.n_right])))
        n_judged = told.n_judged + self.n_judged
        report: Dict[str, Metric] = {
            "loss": AverageMetric(losses, told.n_losses + self.n_losses),
            "accuracy": AverageMetric(n_right, n_judged),
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
        """Of the examples learnt from."""
        return self.ids_later()()

    def ids_later(self) -> Callable[[], List[Optional[str]]]:
        """What gives them when they no longer wait, too: to read them takes its time."""
        batches = self.batches
        return lambda: [id for batch in batches for id in batch.ids()]


class _Told:
    """Sums of what was updated on, or never waits for an update."""

    def __init__(self) -> None:
        self.losses: List[Number] = []
        self.n_losses = 0
        self.n_right: List[Number] = []
        self.n_judged = 0
        self.counts: Counter = Counter()


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
