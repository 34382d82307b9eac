"""Slots that limit the number of worker processes that work at the same time."""

import os
import weakref
from multiprocessing import context, reduction
from typing import Any, Tuple


class JobSlots:
    """Provide a semaphore for several processes. It is a pipe that holds one byte per free slot: a
    process reads a byte to enter, waiting until there is one, and writes it back to leave. (make's
    job server works the same way. A named semaphore would be left on the system if the run is
    killed.)

    at_once (int): Number of slots; 1 makes a lock.
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
