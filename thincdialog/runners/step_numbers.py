"""The numbers of steps, which workers draw from one counter."""

from contextlib import AbstractContextManager
from typing import Any, MutableSequence, Optional

# The cells that are shared.
LAST, LIMIT = 0, 1
ENDLESS = 1 << 62


class StepNumbers:
    """A counter that several workers draw from, up to a limit. Whoever finds it reached
    comes back, so that all meet there.

    cells (MutableSequence[int]): The last number that was drawn, and the limit; shared by
        all workers.
    lock (AbstractContextManager): Shared, too. (The limit is set without it: a worker that
        was killed may hold it for ever.)
    turns (AbstractContextManager): Entered by who makes steps: it lets in no more workers
        than there are processors.
    at_once (int): How many it lets in.
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
        """Let workers draw numbers; nobody is drawing any.

        last (int): Steps made so far.
        room (float): How many more; may be infinity.
        """
        self.cells[LAST], self.cells[LIMIT] = last, int(min(ENDLESS, last + room))

    def end_at(self, number: float) -> None:
        """Give out no later one, as far as they are not drawn yet."""
        self.cells[LIMIT] = int(min(self.cells[LIMIT], number))

    def stop(self) -> None:
        """Give out no more."""
        self.end_at(0)

    def draw(self) -> Optional[int]:
        """The number of a step to make, from 1; None if the limit is reached."""
        with self.lock:
            if self.cells[LAST] >= self.cells[LIMIT]:
                return None
            self.cells[LAST] += 1
            return int(self.cells[LAST])

    def give_back(self) -> None:
        """No step was made with a number that was drawn: somebody else makes one more. (It may
        have a number that was made already: it only chooses among the values of schedules.)"""
        with self.lock:
            self.cells[LAST] -= 1
