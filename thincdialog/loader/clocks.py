"""How long work computes, and how long it waits for something other than a processor."""

import time
from typing import NamedTuple

# Of a thread: nanoseconds at work, nanoseconds in the queue for a processor, and more. The first
# is behind by a tick, so it is asked for elsewhere.
SCHEDULE = "/proc/thread-self/schedstat"


class Spent(NamedTuple):
    """Seconds of this thread since some time, or between two of these.

    wall (float): That went by.
    computing (float): At work.
    queueing (float): For which it could have worked, but others did; 0.0 where the system does
        not tell.
    """

    wall: float
    computing: float
    queueing: float

    @classmethod
    def now(cls) -> "Spent":
        """Up to now."""
        return cls(time.perf_counter(), time.thread_time(), _queued())

    def since(self, begin: "Spent") -> "Spent":
        """What came after the beginning."""
        return Spent(*(here - there for here, there in zip(self, begin)))

    def plus(self, other: "Spent") -> "Spent":
        """Both together."""
        return Spent(*(here + there for here, there in zip(self, other)))

    @property
    def waiting(self) -> float:
        """Seconds neither at work nor kept from it by others."""
        return max(0.0, self.wall - self.computing - self.queueing)


NO_TIME = Spent(0.0, 0.0, 0.0)


def _queued() -> float:
    try:
        with open(SCHEDULE) as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0
