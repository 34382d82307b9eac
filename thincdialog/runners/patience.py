"""How long workers are waited for: none that hangs holds a run."""

import time
from typing import Callable, Collection

from ..errors import WorkerError
from ..training.interruption import Interrupted, Interruption

# How often one looks, while waiting, whether the run is to end.
LOOK_SECONDS = 0.5
# After which silent workers are taken for dead, and for which they are waited for at the end.
MAX_WAIT_SECONDS, MAX_END_SECONDS = 600.0, 25.0


class Patience:
    """Of whoever waits for workers: has an end after a while of silence, and, whatever they say,
    soon after a signal.

    interruption (Interruption): Knows whether the run is to end.
    note (Callable[[str], None]): Told in a line what the user should know.
    max_wait (float): Seconds without a word of anybody, while one is due, that are taken for
        a failure.
    end_seconds (float): How long workers are waited for, all in all, once the run is to end:
        schedulers kill some 30 seconds after SIGTERM.
    """

    def __init__(
        self,
        interruption: Interruption,
        note: Callable[[str], None],
        *,
        max_wait: float = MAX_WAIT_SECONDS,
        end_seconds: float = MAX_END_SECONDS,
    ):
        self.interruption, self.note = interruption, note
        self.max_wait, self.end_seconds = max_wait, end_seconds
        self._end = float("inf")  # Till when workers are waited for.

    def check(self, workers: Collection[int], heard: float) -> None:
        """Nobody says anything just now.

        workers (Collection[int]): The numbers of those who are waited for.
        heard (float): When one of them said something, or was asked (``time.monotonic``).
        RAISES (WorkerError): If it was too long ago.
        RAISES (Interrupted): If they hang after a signal: nothing more can be saved.
        """
        now = time.monotonic()
        if self._end == float("inf") and self.interruption.received is not None:
            self._end = now + self.end_seconds
        elif now > min(self._end, heard + self.max_wait):
            self._give_up(workers, is_ending=now > self._end)

    def _give_up(self, workers: Collection[int], is_ending: bool) -> None:
        first, *others = sorted(workers)
        more = f" (nor from {', '.join(map(str, others))})" if others else ""
        when = f"within {self.max_wait:g} seconds"
        if is_ending:
            when = f"{self.end_seconds:g} seconds after the run was to end"
        error = WorkerError(first, f"no answer {when}{more}: it hangs, or is very slow")
        number = self.interruption.received
        if not is_ending or number is None:
            raise error
        self.note(f"{error}. Nothing more can be saved.")
        raise Interrupted(number)
