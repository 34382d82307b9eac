"""Who of several workers gets the next order."""

import math
from collections import deque
from typing import Any, Deque, List, Optional, Tuple

from .world_worker import Parleyed

# Parleys that a worker has waiting, with the one that it is at: so that it need not wait
# for us before the next one, and little is under way when all have to stop.
AHEAD = 2
# Of short ones it has so many more that they take as many seconds, so that we need to look
# for answers seldom: each time, a worker waits for the core, or for the GIL.
SECONDS_AHEAD, MOST_AHEAD = 0.02, 16
# What a longer parley counts in the seconds that a worker takes; a shorter one is believed at
# once, so that after a long one (compiling, loading) nobody waits for us.
_NEWEST = 0.2
MANY = 1 << 62
# How many more a worker may have had than one that may not begin before another pauses.
TURN = 16


class Orders:
    """Orders for parleys: each goes to the worker that has least to do, and on to another
    if that one has nothing left.

    n_workers (int): How many there are, 1 or more.
    at_once (int): How many may be at parleys at the same time, 1 or more; the others take
        turns with them.
    is_done (List[bool]): By worker, whether its epoch is done.
    """

    def __init__(self, n_workers: int, at_once: int):
        self.at_once = at_once
        self.is_done = [False] * n_workers
        # By worker: what was not answered.
        self._sent: List[Deque[Any]] = [deque() for _ in range(n_workers)]
        # Those that nobody has.
        self._waiting: Deque[Any] = deque()
        # By worker: how long a parley takes, in seconds.
        self._pace: List[Optional[float]] = [None] * n_workers
        # By worker: how many parleys the last whole epoch had.
        self._n_last = [MANY] * n_workers
        self._is_whole = False
        self.begin([False] * n_workers)

    def begin(self, is_done: List[bool], is_whole: bool = True) -> None:
        """Nothing is under way, and an epoch begins, or goes on somewhere.

        is_done (List[bool]): Who has nothing to do in it.
        is_whole (bool): Whether it begins.
        """
        if self._is_whole and all(self.is_done):
            self._n_last = self._n_had
        self.is_done, self._is_whole = is_done, is_whole
        # By worker: how many parleys it has made or is to make.
        self._n_had: List[int] = [0] * len(is_done)

    def add(self, order: Any) -> None:
        """Have one more, behind those that wait."""
        self._waiting.append(order)

    def hand_out(self) -> Optional[Tuple[int, Any]]:
        """Take the next order, and who gets it; None if nobody has room, or none waits. If
        nobody has anything left to do, those that wait are dropped."""
        if all(self.is_done):
            self._waiting.clear()
        worker = self._next_worker() if self._waiting else None
        if worker is None:
            return None
        order = self._waiting.popleft()
        self._sent[worker].append(order)
        self._n_had[worker] += 1
        return worker, order

    def _next_worker(self) -> Optional[int]:
        """Number of the one that gets the next order; None if nobody has room."""
        busy = [worker for worker, sent in enumerate(self._sent) if sent]
        live = [worker for worker, is_done in enumerate(self.is_done) if not is_done]
        idle = [worker for worker in live if not self._sent[worker]]
        if idle and len(busy) < self.at_once:
            return min(idle, key=self._n_had.__getitem__)
        limit = min((self._n_had[worker] + TURN for worker in idle), default=float("inf"))
        able = [
            worker
            for worker in live
            if 0 < len(self._sent[worker]) < self._most(worker) and self._n_had[worker] < limit
        ]
        return min(able, key=lambda worker: len(self._sent[worker]), default=None)

    def _most(self, worker: int) -> int:
        """How many orders a worker may have."""
        pace = self._pace[worker]
        if pace is None:
            return AHEAD
        most = AHEAD - 1 + min(MOST_AHEAD, math.ceil(SECONDS_AHEAD / max(pace, 1e-9)))
        return max(AHEAD, min(most, self._n_left(worker)))

    def _n_left(self, worker: int) -> int:
        """Parleys till the end of an epoch as long as the last one."""
        return self._n_last[worker] - self._n_had[worker] + len(self._sent[worker])

    def seconds_to_rest(self) -> float:
        """How long nobody will need another order: half of what the one with least to do
        has waiting; and not past the end of an epoch as long as the last one."""
        busy = [worker for worker, sent in enumerate(self._sent) if sent]
        rests = [
            max(0, min((len(self._sent[worker]) - 1) / 2, self._n_left(worker) - 1))
            * (self._pace[worker] or 0.0)
            for worker in busy
        ]
        return min([SECONDS_AHEAD, *rests]) if busy else 0.0

    def answered(self, worker: int, parleyed: Parleyed) -> None:
        """A worker has answered the oldest of its orders."""
        order = self._sent[worker].popleft()
        self.is_done[worker] = parleyed.epoch_done
        if parleyed.has_parleyed:
            before, seconds = self._pace[worker], parleyed.seconds
            before = seconds if before is None else before
            self._pace[worker] = min(seconds, before + _NEWEST * (seconds - before))
        else:
            self._n_had[worker] -= 1
            self._waiting.append(order)

    @property
    def n_waiting(self) -> int:
        """How many were added, and nobody has them."""
        return len(self._waiting)

    @property
    def n_open(self) -> int:
        """How many were added and not answered by a parley."""
        return sum(map(len, self._sent)) + self.n_waiting

    def late(self) -> List[int]:
        """Numbers of the workers that have orders and have not answered them."""
        return [worker for worker, sent in enumerate(self._sent) if sent]
