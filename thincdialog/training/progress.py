"""The progress of training: its position, its limits, and the next evaluation."""

import math
import time
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Mapping, Optional

from ..teachers import Teacher

# The largest fraction of an epoch that counts as done before its end.
ALMOST = 0.999
# Events after more steps than this are not foreseen.
MOST_STEPS = 2**40


@dataclass
class Position:
    """Hold the progress of training.

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
        self._ask()

    def count(self, n_examples: int) -> bool:
        """Count the examples that a step was trained on.

        RETURNS (bool): Whether the step has more examples than any step before.
        """
        is_largest = n_examples > self._largest_step
        if is_largest:
            self._largest_step = n_examples
            self._ask()  # Some streams know their size once they have been read.
        return is_largest

    def _ask(self) -> None:
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
        # Before the first step, its size is unknown: it may go to the end of the epoch.
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
        n_learnt = self.n_examples = position.examples - self._first_example
        return n_learnt

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


class TrainingLimits:
    """End training by epochs, steps or seconds, whichever limit is reached first. 0 means no limit.

    min_steps (int): Minimum number of steps, before which epochs do not end training.
    """

    settings = ("max_epochs", "max_steps", "max_seconds", "min_steps")

    def __init__(self, epochs: float, steps: int, seconds: float, min_steps: int = 0):
        self.epochs, self.steps, self.seconds = epochs, steps, seconds
        self.min_steps = min_steps

    @classmethod
    def of(cls, training: Mapping[str, Any]) -> "TrainingLimits":
        """Return the limits of ``[training]``."""
        return cls(*(training[name] for name in cls.settings))

    def reached(self, position: Position, seconds: float) -> Optional[str]:
        """Return the limit that is reached, as a phrase for the user, or None."""
        if self.steps and position.step >= self.steps:
            return f"max_steps = {self.steps} reached"
        # The tolerance is for rounding errors in sums of fractions of epochs.
        if self.epochs and position.epoch >= self.epochs - 1e-9:
            if position.step == self.min_steps:
                return f"min_steps = {self.min_steps} reached, after max_epochs = {self.epochs:g}"
            if position.step > self.min_steps:
                return f"max_epochs = {self.epochs:g} reached"
        if self.seconds and seconds >= self.seconds:
            return f"max_seconds = {self.seconds:g} reached"
        return None

    def total_steps(self, steps_per_epoch: Optional[float]) -> Optional[int]:
        """Return the number of steps until the end; None if it is not known."""
        totals = [self.steps] if self.steps else []
        if self.epochs and steps_per_epoch:
            total = max(self.epochs * steps_per_epoch, self.min_steps)
            totals += [math.ceil(total)] if math.isfinite(total) else []
        return min(totals) if totals else None


class Every:
    """Decide when the next evaluation (or checkpoint) is due, by epochs, steps or seconds of
    training. 0 disables a unit.

    Steps and epochs are counted from the start, so that 0.5 means the middle and the end of every
    epoch with any number of batches. Seconds are counted from the last evaluation.

    least_steps (int): Minimum number of steps between evaluations by epochs. If ``epochs`` have
        fewer steps, estimated at the last evaluation, the next evaluation is due after a multiple
        of ``epochs``. The end of the first epoch, which may begin with large batches, is never
        skipped.
    """

    def __init__(self, epochs: float, steps: int, seconds: float, least_steps: int = 0):
        self.epochs, self.steps, self.seconds = epochs, steps, seconds
        self.least_steps = least_steps
        self._last = Position(step=-1)
        self._last_seconds = 0.0

    @property
    def step(self) -> int:
        """Step of the last event; -1 before the first."""
        return self._last.step

    @classmethod
    def evaluation(cls, training: Mapping[str, Any]) -> "Every":
        """Return the schedule of evaluations of ``[training]``. If the data is so small that
        ``min_steps`` decides when training ends, there are at most MOST_EVALUATIONS after its first
        epoch."""
        units = ("epochs", "steps", "seconds")
        epochs, steps, seconds = (training[f"eval_every_{unit}"] for unit in units)
        return cls(epochs, steps, seconds, training["min_steps"] // MOST_EVALUATIONS)

    def due(self, position: Position, seconds: float) -> bool:
        """Return whether the event is due."""
        last = self._last
        return position.step > last.step and bool(
            _passed(last.step, position.step, self.steps)
            or _passed(last.epoch, position.epoch, self._epochs())
            or (self.seconds and seconds - self._last_seconds >= self.seconds)
        )

    def next_second(self) -> float:
        """Return the second of training at which the event is due; infinity if it does not depend
        on seconds."""
        return self._last_seconds + self.seconds if self.seconds else math.inf

    def _epochs(self) -> float:
        """Return the number of epochs between two events."""
        # Computed from the last evaluation, not from the current step: batches differ in size, but
        # the estimate must not change between two evaluations.
        last = self._last
        if not (self.epochs and self.least_steps and last.epoch and last.step):
            return self.epochs
        needed = self.least_steps * last.epoch / last.step  # Epochs.
        times = math.ceil(min(needed / self.epochs, MOST_MULTIPLES) - 1e-9)
        if last.epoch < ALMOST:
            times = min(times, int(min(1 / self.epochs, MOST_MULTIPLES) + 1e-9))
        return self.epochs * max(1, times)

    def done(self, position: Position, seconds: float) -> None:
        """Record that the event has taken place."""
        self._last, self._last_seconds = replace(position), seconds

    def state(self) -> Dict[str, Any]:
        """Return the time of the last event, as JSON values."""
        return {"position": vars(self._last), "seconds": self._last_seconds}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``state``."""
        self.done(Position(**state["position"]), state["seconds"])


# Maximum number of evaluations by epochs before min_steps.
MOST_EVALUATIONS = 20
# Larger multiples cannot be distinguished from the next one in floating point.
MOST_MULTIPLES = 1e15


def _passed(before: float, now: float, every: float) -> bool:
    """Return whether a multiple of ``every`` is greater than ``before`` and at most ``now``."""
    if not every:
        return False
    if now / every > MOST_MULTIPLES:
        return now > before
    # The tolerance is for rounding errors in sums of fractions of epochs.
    return int(now / every + 1e-9) > int(before / every + 1e-9)
