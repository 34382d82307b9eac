"""The signals that end a program: which they are, and what comes of one at a bad moment.

Python calls a signal's handler between any two instructions, also within a finalizer or a weak
reference's callback. What the handler raises there is dropped, with a traceback on stderr.
"""

import signal
import sys
import threading
from typing import Any, Callable, Optional, Type

# Windows has no SIGHUP.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
# An exit code is this and the number of the signal that ended the process, as shells say it.
BY_SIGNAL = 128
# Seconds until a signal is sent again; a finalizer is over by then.
SOON = 0.01


class EndedBySignal(KeyboardInterrupt):
    """A signal ended what was done. Handlers of signals raise it.

    number (int): Of the signal.
    """

    def __init__(self, number: int, *told: str):
        super().__init__(*told)
        self.number = number

    @property
    def exit_code(self) -> int:
        """As shells say that a signal ended a process."""
        return BY_SIGNAL + self.number


class SendingAgain:
    """While it is entered, a signal comes again whose handler raised where Python drops it.

    raised (Type[EndedBySignal]): What the handler raises.
    on_dropped (Callable[[], None]): Called before: the handler shall raise once more.
    """

    def __init__(self, raised: Type[EndedBySignal], on_dropped: Callable[[], None]):
        self._raised, self._on_dropped = raised, on_dropped
        self._before: Optional[Callable[[Any], Any]] = None

    def __enter__(self) -> "SendingAgain":
        self._before, sys.unraisablehook = sys.unraisablehook, self._receive
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            sys.unraisablehook, self._before = self._before, None

    def _receive(self, unraisable: Any) -> None:
        error, before = unraisable.exc_value, self._before
        if isinstance(error, self._raised):
            main = threading.main_thread().ident
            timer = threading.Timer(SOON, signal.pthread_kill, (main, error.number))
            timer.daemon = True
            timer.start()
            # Last: until then, another signal counts as the second, and raises nothing here.
            self._on_dropped()
        elif before is not None:
            before(unraisable)
