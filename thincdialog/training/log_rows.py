"""The log rows of a run, for loggers and callbacks."""

import math
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..metrics import AverageMetric
from ..metrics.exact import ExactSum
from ..ops.later import MOST_WAITING, Later, settle
from ..protocol import StepReport
from .progress import Position

# Prefix of the counts of steps by the age of their gradient, in versions of the weights.
STALENESS = "staleness/"


class LogRows:
    """Add up the reports of steps, and make the rows of the log.

    score_name (str): Name of the metric that is optimised.
    """

    def __init__(self, score_name: str):
        self.score_name = score_name
        self._examples = 0
        self._seconds = 0.0
        self._begin()

    def begin(self, position: Position, seconds: float) -> None:
        """Begin a new row, and drop the reports counted so far."""
        self._examples, self._seconds = position.examples, seconds
        self._begin()

    def _begin(self) -> None:
        # The sum does not depend on the order of the steps.
        self._loss, self._weight = ExactSum(), 0
        # Losses that are still on a device, with their weights; and norms, with None.
        self._waiting: List[Tuple[Later, Optional[int]]] = []
        self._unit = "examples"
        self._counts: Counter = Counter()

    def count(self, report: StepReport) -> None:
        """Add the report of a step."""
        loss = report.loss
        if isinstance(loss, Later):
            self._waiting.append((loss, report.weight))
            self._unit = report.unit
        elif loss is not None:
            self._loss.add(loss)
            self._weight += report.weight
            self._unit = report.unit
        if isinstance(report.gradient_norm, Later):
            self._waiting.append((report.gradient_norm, None))
        self._counts.update(report.counts)
        if len(self._waiting) >= MOST_WAITING:
            self.settle()

    def settle(self) -> None:
        """Wait for numbers that are still on a device.

        RAISES (TrainingError): If a number is not finite; the error names the first such step.
        """
        waiting, self._waiting = self._waiting, []
        for value, (_, weight) in zip(settle([number for number, _ in waiting]), waiting):
            if weight is not None:
                self._loss.add(value)
                self._weight += weight

    def mean_loss(self) -> Tuple[float, str]:
        """Return the mean loss since the last row, without numbers that are still on a device, and
        its unit: "example" or "token"."""
        mean = float(self._loss) / self._weight if self._weight else math.nan
        return mean, self._unit.removesuffix("s")

    def make(
        self,
        position: Position,
        seconds: float,
        report: Mapping[str, float],
        is_best: bool,
        **more: Any,
    ) -> Dict[str, Any]:
        """Return the row of an evaluation or of training only (see ``loggers/logger.py``), and
        begin the next row.

        position (Position): Progress of the training.
        seconds (float): Seconds of training.
        report (Mapping[str, float]): Scores on the dev data; empty without an evaluation.
        is_best (bool): Whether the score is the best so far.
        **more (Any): Further entries of the row.
        """
        self.settle()
        examples, spent = position.examples - self._examples, seconds - self._seconds
        counts = self._counts

        def rate(count: float) -> Optional[float]:
            return count / spent if examples else None

        def share(part: int, whole: int) -> Optional[float]:
            return AverageMetric(part, whole).value() if whole else None

        row = {
            "step": position.step,
            "epoch": position.epoch,
            "examples": position.examples,
            "loss_per_example": None,
            "score_name": self.score_name,
            "score": report.get(self.score_name),
            "scores": dict(report),
            "is_best": is_best,
            "examples_per_second": rate(examples),
            "tokens_per_second": rate(counts["tokens"]),
            "padding_fraction": share(counts["cells"] - counts["tokens"], counts["cells"]),
            "truncated_contexts": share(counts["truncated_contexts"], counts["contexts"]),
            "seconds": seconds,
            **more,
        }
        for name in ("ignored_examples", "dropped_gradients"):
            if counts[name]:
                row[name] = counts[name]
        # Age of a gradient, in versions of the weights, to the number of steps with such gradients.
        stale = {
            name[len(STALENESS) :]: n for name, n in counts.items() if name.startswith(STALENESS)
        }
        if stale:
            row["staleness"] = dict(sorted(stale.items(), key=lambda item: int(item[0])))
        if self._weight:
            loss = AverageMetric(self._loss, self._weight)
            row[f"loss_per_{self.mean_loss()[1]}"] = loss.value()
        self.begin(position, seconds)
        return row

    def state(self) -> Dict[str, Any]:
        """Return the state, as JSON values."""
        self.settle()
        return {
            "examples": self._examples,
            "seconds": self._seconds,
            "loss": self._loss.state(),
            "weight": self._weight,
            "unit": self._unit,
            "counts": dict(self._counts),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``state``."""
        self._examples, self._seconds = state["examples"], state["seconds"]
        self._begin()
        self._loss.restore(state["loss"])
        self._weight, self._unit = state["weight"], state["unit"]
        self._counts.update(state["counts"])
