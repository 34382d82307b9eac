"""Changes of the whole process, for as long as somebody wants them."""

import sys
import threading
from typing import Callable, Optional

# Seconds that a thread with the GIL may go on while others wait for it. With Python's 0.005,
# workers whose steps take 10 to 50 ms, most of it without the GIL, waited 3 to 10 % of the
# time; with this 2 to 7 %; with less, not less.
SWITCH_SECONDS = 0.001

Undo = Callable[[], None]


class ProcessWide:
    """A change that holds between ``begin`` and ``end``, however many begin and end, in
    whatever order; then all is as before the first.

    change (Callable[[], Undo]): Makes the change, and gives what takes it back.
    """

    def __init__(self, change: Callable[[], Undo]):
        self._change = change
        self._lock = threading.Lock()
        self._n_begun = 0
        self._undo: Optional[Undo] = None

    def begin(self) -> None:
        """From now on."""
        with self._lock:
            if not self._n_begun:
                self._undo = self._change()
            self._n_begun += 1

    def end(self) -> None:
        """One fewer wants it. To be called once for each ``begin``."""
        with self._lock:
            self._n_begun -= 1
            if not self._n_begun and self._undo is not None:
                self._undo()
                self._undo = None


def _switch_often() -> Undo:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    return lambda: sys.setswitchinterval(before)


frequent_switches = ProcessWide(_switch_often)
