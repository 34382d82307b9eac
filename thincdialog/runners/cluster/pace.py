"""The number of steps to ask workers for in one call."""

import time

# Long enough that asking costs nothing, short enough that signals and logs do not wait.
SECONDS = 0.5
MOST = 4096


class Pace:
    """Chooses that number by the duration of earlier steps."""

    def __init__(self) -> None:
        self._rate = 0.0  # Steps in a second.
        self._began = 0.0

    def begin(self, room: float) -> int:
        """Return the number of steps to ask for now.

        room (float): The largest number allowed.
        """
        self._began = time.perf_counter()
        return int(min(room, max(1, min(MOST, self._rate * SECONDS))))

    def end(self, n_steps: int) -> float:
        """Take the number of steps that were made since ``begin``.

        RETURNS (float): The seconds that they took.
        """
        seconds = max(time.perf_counter() - self._began, 1e-6)
        rate = n_steps / seconds
        # The first steps are slow: kernels are compiled, memory is touched.
        self._rate = max(rate, 0.5 * (self._rate + rate)) if n_steps else self._rate
        return seconds
