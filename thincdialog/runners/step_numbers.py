"""The numbers of steps, which workers draw from one counter."""

from contextlib import AbstractContextManager
from typing import Any, MutableSequence, Optional

# Indices of the shared cells.
LAST, LIMIT = 0, 1
ENDLESS = 1 << 62


class StepNumbers:
    """A counter from which several workers draw, up to a limit. A worker that finds the limit
    reached returns from ``run``, so that all workers stop there.

    cells (MutableSequence[int]): The last number that was drawn, and the limit; shared by
        all workers.
    lock (AbstractContextManager): Shared, too. (The limit is set without it, because a worker
        that was killed may hold it for ever.)
    turns (AbstractContextManager): A worker enters it to make steps: it lets in no more workers
        than there are CPU cores.
    at_once (int): The number of workers that it lets in.
    """

    def __init__(
        self,
        cells: MutableSequence[int],
        lock: "AbstractContextManager[Any]",
        turns: "AbstractContextManager[Any]",
        at_once: int,
    ):
        self.cells, self.lock, self.turns, self.at_once = cells, lock, turns, at_once

    def begin(self, last: int, room: float) -> None:
        """Let workers draw numbers; call this while no worker is drawing.

        last (int): Steps made so far.
        room (float): Number of further steps; may be infinity.
        """
        self.cells[LAST], self.cells[LIMIT] = last, int(min(ENDLESS, last + room))

    def end_at(self, number: float) -> None:
        """Give out no later number, except those that workers have drawn already."""
        self.cells[LIMIT] = int(min(self.cells[LIMIT], number))

    def stop(self) -> None:
        """Give out no more."""
        self.end_at(0)

    def draw(self) -> Optional[int]:
        """Return the number of a step to make, from 1, or None if the limit is reached."""
        with self.lock:
            if self.cells[LAST] >= self.cells[LIMIT]:
                return None
            self.cells[LAST] += 1
            return int(self.cells[LAST])

    def give_back(self) -> None:
        """Give back a number with which no step was made, so that one more step can be made. (It
        may get a number that another step had: numbers only select the values of schedules.)"""
        with self.lock:
            self.cells[LAST] -= 1
