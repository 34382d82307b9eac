"""The progress of training: its position, clock and epochs, and the sums for the log's rows."""

import math
import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ..metrics import AverageMetric
from ..metrics.exact import ExactSum
from ..ops.later import MOST_WAITING, Later, Number, settle
from ..protocol import StepReport
from ..teachers import Teacher

# The largest fraction of an epoch that counts as done before its end.
ALMOST = 0.999
# Prefix of the counts of steps by the age of their gradient, in versions of the weights.
STALENESS = "staleness/"
# Events after more steps than this are not foreseen.
MOST_STEPS = 2**40


@dataclass
class Position:
    """Hold the position of training in the data.

    epoch (float): Number of epochs, with the fraction of the current one; only whole numbers while
        the size of the data is unknown (in the first epoch of a stream).
    step (int): Number of updates of the weights.
    examples (int): Number of examples trained on in all epochs.
    """

    epoch: float = 0.0
    step: int = 0
    examples: int = 0


class Clock:
    """Measure the seconds of training, without evaluations (``leave_out``)."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._paused = 0.0

    def seconds(self) -> float:
        """Return the seconds since the start, without the pauses."""
        return time.perf_counter() - self._started - self._paused

    def leave_out(self, seconds: float) -> None:
        """Leave these seconds out of the count."""
        self._paused += seconds

    def start_at(self, seconds: float) -> None:
        """Continue from the seconds that an earlier process counted."""
        self._started = time.perf_counter()
        self._paused = -seconds


class Epochs:
    """Count epochs by the examples trained on.

    teacher (Teacher): Teacher of the training data.
    number (int): Number of the current epoch, or of the next one between epochs; from 0.
    is_running (bool): Whether an epoch is in progress.
    n_examples (Optional[int]): Number of examples trained on in an epoch, if known; exact after the
        first epoch.
    """

    def __init__(self, teacher: Teacher):
        self.teacher = teacher
        self.number = 0
        self.is_running = False
        self._first_example = 0
        self.n_examples: Optional[int] = None
        self._largest_step = 0

    def begin(self, position: Position) -> None:
        """Begin the next epoch."""
        self.is_running = True
        self._first_example = position.examples
        self._update_size()

    def count(self, n_examples: int) -> bool:
        """Count the examples that a step was trained on.

        RETURNS (bool): Whether the step has more examples than any step before.
        """
        is_largest = n_examples > self._largest_step
        if is_largest:
            self._largest_step = n_examples
            self._update_size()  # Some streams know their size once they have been read.
        return is_largest

    def _update_size(self) -> None:
        if self.n_examples is None:
            self.n_examples = self.teacher.n_examples

    def locate(self, position: Position, is_over: bool) -> None:
        """Set the position's epoch."""
        if is_over:
            position.epoch = self.number + 1.0
            return
        total = self.n_examples
        share = (position.examples - self._first_example) / total if total else 0.0
        # If a task is shown again, an epoch is longer than the data.
        position.epoch = self.number + min(ALMOST, share)

    def steps_until(self, position: Position, is_due: Callable[[Position], bool]) -> float:
        """Return the number of steps, 1 or more, before something is due within the epoch, if no
        step has more examples than those so far; infinity if nothing is.

        is_due (Callable): Returns whether something is due at a position, and then at all later
            ones.
        """
        # Before the first step, the size of a step is unknown: one step may be the whole epoch.
        largest = self._largest_step or self.n_examples or 0

        def is_due_after(n_steps: int) -> bool:
            n_examples = position.examples + n_steps * largest
            later = Position(position.epoch, position.step + n_steps, n_examples)
            self.locate(later, False)
            return is_due(later)

        bound = 1
        while not is_due_after(bound):
            bound *= 2
            if bound >= MOST_STEPS:
                return math.inf
        return bisect_left(range(bound), True, lo=bound // 2 + 1, key=is_due_after)

    def end(self, position: Position) -> int:
        """End the epoch.

        RETURNS (int): Number of examples that it was trained on.
        """
        self.is_running = False
        self.number += 1
        n_trained = self.n_examples = position.examples - self._first_example
        return n_trained

    def steps_per_epoch(self, position: Position) -> Optional[float]:
        """Return the steps per epoch, estimated from the steps so far; None before the first."""
        total = self.n_examples
        return position.step * total / position.examples if position.examples and total else None

    def state(self) -> Dict[str, Any]:
        """Return the state, as JSON values."""
        return {
            "number": self.number,
            "is_running": self.is_running,
            "first_example": self._first_example,
            "n_examples": self.n_examples,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``state``."""
        self.number, self.is_running = state["number"], state["is_running"]
        self._first_example, self.n_examples = state["first_example"], state["n_examples"]


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
        # Losses that are not in the sum yet, some of them still on a device, with their weights;
        # and norms on a device, with None.
        self._waiting: List[Tuple[Number, Optional[int]]] = []
        self._unit = "examples"
        self._counts: Counter = Counter()

    def count(self, report: StepReport) -> None:
        """Add the report of a step."""
        if report.loss is not None:
            self._waiting.append((report.loss, report.weight))
            self._unit = report.unit
        if isinstance(report.gradient_norm, Later):
            self._waiting.append((report.gradient_norm, None))
        self._counts.update(report.counts)
        if len(self._waiting) >= MOST_WAITING:
            self.settle()

    def settle(self) -> None:
        """Add the waiting losses to the sum. Numbers may still be computed on a device.

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
        known = [each for each in self._waiting if not isinstance(each[0], Later)]
        total = math.fsum([float(self._loss), *(float(loss) for loss, _ in known)])
        weight = self._weight + sum(weight or 0 for _, weight in known)
        return total / weight if weight else math.nan, self._unit.removesuffix("s")

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
            row[f"loss_per_{self._unit.removesuffix('s')}"] = loss.value()
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
