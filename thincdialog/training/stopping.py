"""When to evaluate, and when training ends."""

import math
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional


@dataclass
class Position:
    """How far training has come.

    epoch (float): Epochs done, with the share of the current one; whole numbers
        only while the size of the data is unknown (first epoch of a stream).
    step (int): Updates of the weights.
    examples (int): Examples learnt from, all epochs together.
    """

    epoch: float = 0.0
    step: int = 0
    examples: int = 0


class Clock:
    """Seconds of training; those of evaluations go to ``leave_out``."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._paused = 0.0

    def seconds(self) -> float:
        """Seconds since the start, without the pauses."""
        return time.perf_counter() - self._started - self._paused

    def leave_out(self, seconds: float) -> None:
        """Do not count these seconds."""
        self._paused += seconds

    def start_at(self, seconds: float) -> None:
        """Go on behind so many seconds of an earlier process."""
        self._started = time.perf_counter()
        self._paused = -seconds


class Limits:
    """Ends training by epochs, steps or seconds, whichever comes first; 0 = no limit."""

    def __init__(self, max_epochs: float, max_steps: int, max_seconds: float):
        self.max_epochs = max_epochs
        self.max_steps = max_steps
        self.max_seconds = max_seconds

    def reached(self, position: Position, seconds: float) -> Optional[str]:
        """The limit that is reached, as a phrase for the user, or None."""
        if self.max_steps and position.step >= self.max_steps:
            return f"max_steps = {self.max_steps} reached"
        # Sums of fractions of epochs must not miss a limit by a rounding error.
        if self.max_epochs and position.epoch >= self.max_epochs - 1e-9:
            return f"max_epochs = {self.max_epochs:g} reached"
        if self.max_seconds and seconds >= self.max_seconds:
            return f"max_seconds = {self.max_seconds:g} reached"
        return None

    def steps_left(self, position: Position) -> float:
        """Steps before ``max_steps``; infinity without it."""
        return self.max_steps - position.step if self.max_steps else math.inf

    def epochs_left(self, position: Position) -> float:
        """Epochs before ``max_epochs``; infinity without it."""
        return self.max_epochs - position.epoch if self.max_epochs else math.inf

    def total_steps(self, steps_per_epoch: Optional[float]) -> Optional[int]:
        """How many steps there will be, as far as can be known; None if not."""
        totals = [self.max_steps] if self.max_steps else []
        if self.max_epochs and steps_per_epoch:
            totals.append(math.ceil(self.max_epochs * steps_per_epoch))
        return min(totals) if totals else None


class Every:
    """Says when the next evaluation (or checkpoint) is due: by steps, epochs or seconds;
    0 = not by it.

    Steps and epochs are counted from the start, so that 0.5 means the middle and the end
    of every epoch whatever the number of batches; seconds from the last evaluation.
    """

    def __init__(self, epochs: float, steps: int, seconds: float):
        self.epochs = epochs
        self.steps = steps
        self.seconds = seconds
        self._last = Position()
        self._last_seconds = 0.0

    def due(self, position: Position, seconds: float) -> bool:
        """Whether it is time."""
        last = self._last
        return position.step > last.step and bool(
            _passed(last.step, position.step, self.steps)
            or _passed(last.epoch, position.epoch, self.epochs)
            or (self.seconds and seconds - self._last_seconds >= self.seconds)
        )

    def steps_left(self, position: Position) -> float:
        """Steps before it is time by their number; infinity without that."""
        return self.steps - position.step % self.steps if self.steps else math.inf

    def epochs_left(self, position: Position) -> float:
        """Epochs before it is time by these; infinity without that."""
        return self.epochs - position.epoch % self.epochs if self.epochs else math.inf

    def done(self, position: Position, seconds: float) -> None:
        """Note that it has taken place."""
        self._last = Position(**vars(position))
        self._last_seconds = seconds

    def state(self) -> Dict[str, Any]:
        """When it was last, as JSON values."""
        return {"position": vars(self._last), "seconds": self._last_seconds}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what ``state`` gave."""
        self._last = Position(**state["position"])
        self._last_seconds = state["seconds"]


def _passed(before: float, now: float, every: float) -> bool:
    """Whether a multiple of ``every`` lies behind ``before`` and not beyond ``now``."""
    # Sums of fractions of epochs must not miss a multiple by a rounding error.
    return every > 0 and int(now / every + 1e-9) > int(before / every + 1e-9)


@dataclass
class Best:
    """Remembers the best score and says when to give up or be content.

    higher_is_better (bool): Direction of the score.
    patience (int): Evaluations in a row without a new best before training ends;
        0 = never for this reason.
    target (Optional[float]): Score that is good enough to end.
    """

    higher_is_better: bool
    patience: int = 0
    target: Optional[float] = None
    score: Optional[float] = None
    step: int = 0
    report: Mapping[str, float] = field(default_factory=dict)
    without_progress: int = 0

    def see(self, score: float, step: int, report: Mapping[str, float]) -> bool:
        """Take in a new score; True if it is the best so far (the first of equals)."""
        if self.score is None or self._is_better(score, self.score):
            self.score, self.step, self.report = score, step, dict(report)
            self.without_progress = 0
            return True
        self.without_progress += 1
        return False

    def reached(self) -> Optional[str]:
        """Why to end now, as a phrase for the user, or None."""
        if self.target is not None and self.score is not None:
            if not self._is_better(self.target, self.score):
                return f"target_score = {self.target:g} reached"
        if self.patience and self.without_progress >= self.patience:
            return f"no better score in {self.patience} evaluations (patience)"
        return None

    def state(self) -> Dict[str, Any]:
        """What it remembers, as JSON values."""
        return {
            "higher_is_better": self.higher_is_better,
            "score": self.score,
            "step": self.step,
            "report": dict(self.report),
            "without_progress": self.without_progress,
        }

    def _is_better(self, new: float, old: float) -> bool:
        return new > old if self.higher_is_better else new < old
