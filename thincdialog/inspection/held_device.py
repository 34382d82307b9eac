"""Tells how long a GPU works, without what it waits for the host."""

from typing import Any, Callable, Optional, Tuple

import numpy

# The source of a kernel that keeps a GPU busy.
HOLD = r"""
extern "C" __global__ void hold(float* x, long long n) {
    float y = x[0];
    for (long long i = 0; i < n; i++) y = y * 0.999f + 0.001f;
    x[0] = y;
}
"""


class HeldDevice:
    """A GPU that is held by a kernel until all of some work is asked for: then it works without
    gaps, and events tell how long.

    fewest_turns, most_turns (int): Of the kernel's loop: about 10 ms, and half a second.
    """

    fewest_turns, most_turns = 1 << 22, 1 << 28

    def __init__(self, cupy: Any) -> None:
        self.cupy, self._kernel = cupy, cupy.RawKernel(HOLD, "hold")
        self._cell = cupy.zeros((1,), dtype="f")
        self._turns = self.fewest_turns
        self._kernel((1,), (1,), (self._cell, numpy.int64(1)))  # Compiles it.

    def event(self) -> Any:
        """What tells when the work so far is done."""
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def between(self, first: Any, last: Any) -> float:
        """Seconds between two events that are over."""
        return float(self.cupy.cuda.get_elapsed_time(first, last)) / 1e3

    def time(self, work: Callable[[], Any], waits: Optional[Callable[[], bool]] = None) -> float:
        """How many seconds the GPU worked; nan if it was let go before all was asked for, as
        by work that waits for it.

        work (Callable): Done again, with a longer hold, as long as it was let go too early.
        waits (Optional[Callable]): Whether the work has waited: then no hold is long enough.
        """
        turns = self._turns
        while turns <= self.most_turns:
            seconds, is_held = self._once(work, turns)
            if is_held:
                self._turns = turns
                return seconds
            if waits is not None and waits():
                break
            turns *= 2
        return numpy.nan

    def _once(self, work: Callable[[], Any], turns: int) -> Tuple[float, bool]:
        self._kernel((1,), (1,), (self._cell, numpy.int64(turns)))
        first = self.event()
        work()
        last, is_held = self.event(), not first.done
        last.synchronize()
        return self.between(first, last), is_held
