"""When training evaluates, saves, logs and ends."""

import math
from dataclasses import replace
from typing import Any, Dict, Mapping, NamedTuple, Optional

from .progress import ALMOST, Position

# Maximum number of evaluations by epochs before min_steps.
MOST_EVALUATIONS = 20
# Larger multiples cannot be distinguished from the next one in floating point.
MOST_MULTIPLES = 1e15
# Settings of ``[training]`` that end it.
LIMITS = ("max_epochs", "max_steps", "max_seconds", "min_steps")
# Settings of ``[training]`` that may be fractions of an epoch.
OF_EPOCHS = ("max_epochs", "eval_every_epochs")


class TrainingLimits(NamedTuple):
    """End training by epochs, steps or seconds, whichever limit is reached first. 0 means no limit.

    min_steps (int): Minimum number of steps, before which epochs do not end training.
    """

    epochs: float
    steps: int
    seconds: float
    min_steps: int = 0

    @classmethod
    def of(cls, training: Mapping[str, Any]) -> "TrainingLimits":
        """Return the limits of ``[training]``."""
        return cls(*(training[name] for name in LIMITS))

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
    step (int): Step of the last event; -1 before the first.
    """

    def __init__(self, epochs: float, steps: int, seconds: float, least_steps: int = 0):
        self.epochs, self.steps, self.seconds = epochs, steps, seconds
        self.least_steps = least_steps
        self.done(Position(step=-1), 0.0)

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
        # Compute the estimate at the last evaluation, not at the current step: batches differ in
        # size, but the estimate must not change between two evaluations.
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
        self.step = position.step

    def state(self) -> Dict[str, Any]:
        """Return the time of the last event, as JSON values."""
        return {"position": vars(self._last), "seconds": self._last_seconds}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``state``."""
        self.done(Position(**state["position"]), state["seconds"])


def _passed(before: float, now: float, every: float) -> bool:
    """Return whether a multiple of ``every`` is greater than ``before`` and at most ``now``."""
    if not every:
        return False
    if now / every > MOST_MULTIPLES:
        return now > before
    # The tolerance is for rounding errors in sums of fractions of epochs.
    return int(now / every + 1e-9) > int(before / every + 1e-9)
