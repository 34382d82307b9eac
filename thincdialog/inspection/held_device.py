"""Measure how long a GPU works, without the time in which it waits for the host."""

from typing import Any, Callable, Optional

import numpy

# Source of a kernel that keeps a GPU busy.
HOLD = r"""
extern "C" __global__ void hold(float* x, long long n) {
    float y = x[0];
    for (long long i = 0; i < n; i++) y = y * 0.999f + 0.001f;
    x[0] = y;
}
"""


class HeldDevice:
    """Keep a GPU busy with a kernel until some work is completely queued. The GPU then works
    without gaps, and events measure the time.

    fewest_turns, most_turns (int): Range of iterations of the kernel's loop, which take about 10 ms
        to half a second.
    """

    fewest_turns, most_turns = 1 << 22, 1 << 28

    def __init__(self, cupy: Any) -> None:
        self.cupy, self._kernel = cupy, cupy.RawKernel(HOLD, "hold")
        self._cell = cupy.zeros((1,), dtype="f")
        self._turns = self.fewest_turns
        # The first call compiles the kernel.
        self._kernel((1,), (1,), (self._cell, numpy.int64(1)))

    def event(self) -> Any:
        """Record an event that is done when the work queued so far is done."""
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def between(self, first: Any, last: Any) -> float:
        """Return the seconds between two events that are done."""
        return float(self.cupy.cuda.get_elapsed_time(first, last)) / 1e3

    def time(self, work: Callable[[], Any], waits: Optional[Callable[[], bool]] = None) -> float:
        """Return the seconds in which the GPU worked; nan if the hold ended before all work was
        queued, for instance because the work waits for the GPU.

        work (Callable): Queues the work. It is repeated with a longer hold if the hold ended too
            early.
        waits (Optional[Callable]): Returns whether the work has waited for the GPU, in which case
            no hold is long enough.
        """
        turns = self._turns
        while turns <= self.most_turns:
            self._kernel((1,), (1,), (self._cell, numpy.int64(turns)))
            first = self.event()
            work()
            last, is_held = self.event(), not first.done
            last.synchronize()
            if is_held:
                self._turns = turns
                return self.between(first, last)
            if waits is not None and waits():
                break
            turns *= 2
        return numpy.nan
