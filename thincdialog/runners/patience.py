"""Time limits for waiting, so that a worker that hangs does not block a run."""

import time
from typing import Collection

from ..errors import WorkerError
from ..training.interruption import Interrupted, Interruption, Note

# How often a waiting process checks whether the run must end.
LOOK_SECONDS = 0.5
# Defaults of ``max_wait`` and ``end_seconds`` of ``Patience``.
MAX_WAIT_SECONDS, MAX_END_SECONDS = 600.0, 25.0


class Patience:
    """Limit the time to wait for workers. A wait ends after a period of silence, and soon after a
    signal even if workers still send messages.

    interruption (Interruption): Says whether the run must end.
    note (Note): Shows the user one line of text.
    max_wait (float): A wait for an answer fails after this number of seconds without a message.
    end_seconds (float): Seconds to wait for workers, in total, once the run must end. Schedulers
        kill a process some 30 seconds after SIGTERM.
    """

    def __init__(
        self,
        interruption: Interruption,
        note: Note,
        *,
        max_wait: float = MAX_WAIT_SECONDS,
        end_seconds: float = MAX_END_SECONDS,
    ):
        self.interruption, self.note = interruption, note
        self.max_wait, self.end_seconds = max_wait, end_seconds
        self._end = float("inf")  # When to give up, set once the run must end.

    def check(self, workers: Collection[int], heard: float) -> None:
        """Check the time limits; call this whenever no message has arrived.

        workers (Collection[int]): Numbers of the workers whose answer is due.
        heard (float): Time of the last call or message (``time.monotonic``).
        RAISES (WorkerError): If the last message is more than ``max_wait`` seconds ago.
        RAISES (Interrupted): If workers hang after a signal, so that no more can be saved.
        """
        now = time.monotonic()
        if self._end == float("inf") and self.interruption.received is not None:
            self._end = now + self.end_seconds
        elif now > min(self._end, heard + self.max_wait):
            self._give_up(workers, is_ending=now > self._end)

    def _give_up(self, workers: Collection[int], is_ending: bool) -> None:
        """Raise the error for workers that do not answer in time."""
        first, *others = sorted(workers)
        more = f" (nor from {', '.join(map(str, others))})" if others else ""
        when = f"within {self.max_wait:g} seconds"
        if is_ending:
            when = f"{self.end_seconds:g} seconds after the run should have ended"
        error = WorkerError(first, f"no answer {when}{more}: it hangs, or is very slow")
        number = self.interruption.received
        if not is_ending or number is None:
            raise error
        self.note(f"{error}. Nothing more can be saved.")
        raise Interrupted(number)
