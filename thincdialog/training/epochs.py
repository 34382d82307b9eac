"""Which epoch is under way, and how much of it is done."""

import math
from typing import Any, Dict, Mapping, Optional

from ..teachers import Teacher
from .stopping import Position

# The most of an epoch that can be done while it is not.
ALMOST = 0.999


class Epochs:
    """Counts epochs by the examples that were learnt from.

    teacher (Teacher): Of the training data; knows its size, if it is held in memory.
    number (int): Of the epoch that is under way, or comes next; from 0.
    is_running (bool): Whether it is under way.
    """

    def __init__(self, teacher: Teacher):
        self.teacher = teacher
        self.number = 0
        self.is_running = False
        self._first_example = 0
        self._n_examples: Optional[int] = None
        self._largest_step = 0

    def begin(self, position: Position) -> None:
        """The next epoch begins."""
        self.is_running = True
        self._first_example = position.examples

    def count(self, n_examples: int) -> None:
        """A step has learnt from so many examples."""
        self._largest_step = max(self._largest_step, n_examples)

    def steps_left(self, position: Position, epochs: float) -> float:
        """The fewest steps, 1 or more, for so many epochs, if none is larger than those so
        far. Infinity if that is unknown, or beyond the end of this epoch."""
        total = self.n_examples()
        if total is None or position.epoch + epochs > self.number + ALMOST:
            return math.inf
        if not self._largest_step:
            return 1
        # Sums of fractions of epochs must not miss one by a rounding error.
        return max(1, math.ceil(epochs * total / self._largest_step - 1e-6))

    def locate(self, position: Position, is_over: bool) -> None:
        """Set the position's epoch."""
        if is_over:
            position.epoch = self.number + 1.0
            return
        total = self.n_examples()
        share = (position.examples - self._first_example) / total if total else 0.0
        # A task that is shown again makes an epoch longer than the data.
        position.epoch = self.number + min(ALMOST, share)

    def end(self, position: Position) -> int:
        """The epoch is over.

        RETURNS (int): Examples that were learnt from in it.
        """
        self.is_running = False
        self.number += 1
        self._n_examples = position.examples - self._first_example
        return self._n_examples

    def n_examples(self) -> Optional[int]:
        """Learnt from in an epoch, as far as is known; exactly after the first one."""
        if self._n_examples is None:
            self._n_examples = self.teacher.n_examples
        return self._n_examples

    def steps_per_epoch(self, position: Position) -> Optional[float]:
        """Measured so far; None before the first step."""
        total = self.n_examples()
        return position.step * total / position.examples if position.examples and total else None

    def state(self) -> Dict[str, Any]:
        """All of it, as JSON values."""
        return {
            "number": self.number,
            "is_running": self.is_running,
            "first_example": self._first_example,
            "n_examples": self.n_examples(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what ``state`` gave."""
        self.number, self.is_running = state["number"], state["is_running"]
        self._first_example, self._n_examples = state["first_example"], state["n_examples"]
