"""The signals that end a program, and how to keep one from being lost.

Python calls a signal's handler between any two instructions, also within a finalizer or a weak
reference's callback. An error that the handler raises there is dropped, with a traceback on stderr.
"""

import _thread
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any, Callable, Optional, Type

# Windows has no SIGHUP.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
# As in shells, the exit code is this number plus the number of the signal that ended the process.
BY_SIGNAL = 128
# Seconds until a signal is sent again; a finalizer is over by then.
SOON = 0.01


def end_silently() -> None:
    """Let Ctrl-C end this child process at once and without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


class EndedBySignal(KeyboardInterrupt):
    """Raised by signal handlers to end the current work.

    number (int): Number of the signal.
    """

    def __init__(self, number: int, *told: str):
        super().__init__(*told)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code that shells give to a process that a signal ended."""
        return BY_SIGNAL + self.number


class SendingAgain:
    """Context manager that sends a signal again if Python drops its handler's error.

    raised (Type[EndedBySignal]): Type of the handler's error.
    on_dropped (Callable[[], None]): Called before the signal is sent again, to prepare the handler
        to raise again.
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
            self._on_dropped()
            _send_soon(error.number)
        elif before is not None:
            before(unraisable)


_RECEIVE = SendingAgain._receive.__code__


def comes_later(number: int, frame: Optional[FrameType]) -> bool:
    """Return whether ``SendingAgain`` is running, and if so, send the signal again soon. A handler
    calls this before it raises, because an error raised in there is dropped without a message.

    number (int): Number of the signal.
    frame (Optional[FrameType]): The frame that the handler received.
    """
    while frame is not None:
        if frame.f_code is _RECEIVE:
            _send_soon(number)
            return True
        frame = frame.f_back
    return False


def _send_soon(number: int) -> None:
    # Thread.start() would wait until the thread runs, so the signal could return too early.
    _thread.start_new_thread(_send, (number,))


def _send(number: int) -> None:
    time.sleep(SOON)
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:  # Windows.
        _thread.interrupt_main(signal.Signals(number))
