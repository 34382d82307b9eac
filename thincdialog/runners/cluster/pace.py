"""The choice of how many steps workers make in one call."""

import time

# Duration of a call: long enough that its overhead is negligible, and short enough that signals and
# logs do not have to wait.
SECONDS = 0.5
MAX_STEPS = 4096


class Pace:
    """Choose the number of steps per call from the duration of earlier steps."""

    def __init__(self) -> None:
        self._rate = 0.0  # Steps per second.
        self._began = 0.0

    def begin(self, room: float) -> int:
        """Return the number of steps to make now, and start the clock.

        room (float): Largest number that is allowed.
        """
        self._began = time.perf_counter()
        return int(min(room, max(1, min(MAX_STEPS, self._rate * SECONDS))))

    def end(self, n_steps: int) -> float:
        """Stop the clock, and update the estimate of the speed.

        n_steps (int): Number of steps made since ``begin``.
        RETURNS (float): Seconds since ``begin``.
        """
        seconds = max(time.perf_counter() - self._began, 1e-6)
        rate = n_steps / seconds
        # The first steps are slow: kernels are compiled, and memory is used for the first time.
        self._rate = max(rate, 0.5 * (self._rate + rate)) if n_steps else self._rate
        return seconds
