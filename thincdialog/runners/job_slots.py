"""Slots in which workers of several processes go on."""

import os
import weakref
from multiprocessing import context, reduction
from typing import Any, Tuple


class JobSlots:
    """A pipe that holds a byte for each worker that may go on: whoever enters takes one, and
    waits where there is none. (As make's job server does. Semaphores that processes share
    have a name, which is left when the run is killed.)

    at_once (int): How many may go on at the same time; 1 for a lock.
    """

    def __init__(self, at_once: int):
        self._take(*os.pipe())
        os.write(self._free, bytes(at_once))

    def _take(self, taken: int, free: int) -> None:
        self._taken, self._free = taken, free
        for handle in (taken, free):
            weakref.finalize(self, os.close, handle)

    def __enter__(self) -> None:
        os.read(self._taken, 1)

    def __exit__(self, *error: Any) -> None:
        os.write(self._free, b"\0")

    def __reduce__(self) -> Tuple[Any, ...]:
        context.assert_spawning(self)
        return _attach, tuple(map(reduction.DupFd, (self._taken, self._free)))


def _attach(taken: Any, free: Any) -> JobSlots:
    slots = object.__new__(JobSlots)
    slots._take(taken.detach(), free.detach())
    return slots
