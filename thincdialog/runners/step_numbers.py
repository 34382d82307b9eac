"""The numbers of steps, which workers draw from one counter."""

from contextlib import AbstractContextManager
from typing import Any, MutableSequence, Optional

# The cells that are shared.
LAST, LIMIT = 0, 1
NO_LIMIT = 1 << 62


class StepNumbers:
    """A counter that several workers draw from, up to a limit. Whoever finds it reached
    comes back, so that all meet there.

    cells (MutableSequence[int]): The last number that was drawn, and the limit; shared by
        all workers.
    lock (AbstractContextManager): Shared, too.
    turns (AbstractContextManager): Entered by who makes steps: it lets in no more workers
        than there are processors.
    """

    def __init__(
        self,
        cells: MutableSequence[int],
        lock: "AbstractContextManager[Any]",
        turns: "AbstractContextManager[Any]",
    ):
        self.cells, self.lock, self.turns = cells, lock, turns

    def begin(self, last: int, room: float) -> None:
        """Let workers draw so many numbers.

        last (int): Steps made so far.
        room (float): How many more; may be infinity.
        """
        with self.lock:
            self.cells[LAST] = last
            self.cells[LIMIT] = int(min(NO_LIMIT, last + room))

    def stop(self) -> None:
        """Give out no more."""
        with self.lock:
            self.cells[LIMIT] = 0

    def draw(self) -> Optional[int]:
        """The number of a step to make, from 1; None if the limit is reached."""
        with self.lock:
            if self.cells[LAST] >= self.cells[LIMIT]:
                return None
            self.cells[LAST] += 1
            return self.cells[LAST]

    def give_back(self) -> None:
        """No step was made with a number that was drawn: somebody else makes one more. (It may
        have a number that was made already: it only chooses among the values of schedules.)"""
        with self.lock:
            self.cells[LAST] -= 1
