"""How many steps workers are asked for at once."""

import time

# Long enough that asking costs nothing, short enough that signals and logs do not wait.
SECONDS = 0.5
MOST = 4096


class Pace:
    """Goes by how long steps took."""

    def __init__(self) -> None:
        self._rate = 0.0  # Steps in a second.
        self._began = 0.0

    def begin(self, room: float) -> int:
        """Steps to ask for now.

        room (float): How many there may be.
        """
        self._began = time.perf_counter()
        return int(min(room, max(1, min(MOST, self._rate * SECONDS))))

    def end(self, n_steps: int) -> float:
        """So many were made.

        RETURNS (float): Seconds that they took.
        """
        seconds = max(time.perf_counter() - self._began, 1e-6)
        rate = n_steps / seconds
        # The first steps are slow: kernels are compiled, memory is touched.
        self._rate = max(rate, 0.5 * (self._rate + rate)) if n_steps else self._rate
        return seconds
