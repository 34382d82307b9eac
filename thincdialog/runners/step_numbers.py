"""A counter from which workers draw the numbers of their steps."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, MutableSequence, Optional

# Indices of the shared cells.
LAST, LIMIT = 0, 1
ENDLESS = 1 << 62


@dataclass
class StepNumbers:
    """Hand out step numbers to several workers, up to a limit. A worker that gets no number returns
    from ``run``, so all workers stop at the limit.

    cells (MutableSequence[int]): The last number that was drawn, and the limit, in memory that all
        workers share.
    lock (AbstractContextManager): Lock that workers share. (The limit is set without the lock,
        because a worker that was killed may hold it forever.)
    turns (AbstractContextManager): Semaphore that a worker holds while it makes steps, so that no
        more workers run than there are CPU cores.
    at_once (int): Number of workers that ``turns`` admits.
    """

    cells: MutableSequence[int]
    lock: "AbstractContextManager[Any]"
    turns: "AbstractContextManager[Any]"
    at_once: int

    def begin(self, last: int, room: float) -> None:
        """Set the last number and the limit. Call this while no worker is drawing.

        last (int): Number of steps made so far.
        room (float): Number of further steps that may be made; may be infinite.
        """
        self.cells[LAST], self.cells[LIMIT] = last, int(min(ENDLESS, last + room))

    def end_at(self, number: float) -> None:
        """Lower the limit to ``number``. Numbers that workers have already drawn stay valid."""
        self.cells[LIMIT] = int(min(self.cells[LIMIT], number))

    def stop(self) -> None:
        """Hand out no more numbers."""
        self.end_at(0)

    def draw(self) -> Optional[int]:
        """Return the number of the next step, from 1, or None if the limit is reached."""
        with self.lock:
            if self.cells[LAST] >= self.cells[LIMIT]:
                return None
            self.cells[LAST] += 1
            return int(self.cells[LAST])

    def give_back(self) -> None:
        """Return a number that was drawn but not used, so that one more step can be made. (Another
        worker may already have drawn a later number, so two steps can have the same number. This
        does no harm, because numbers only select the values of schedules.)"""
        with self.lock:
            self.cells[LAST] -= 1
