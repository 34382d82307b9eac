"""The signals that end a program: which they are, and what comes of one at a bad moment.

Python calls a signal's handler between any two instructions, also within a finalizer or a weak
reference's callback. What the handler raises there is dropped, with a traceback on stderr.
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
# An exit code is this and the number of the signal that ended the process, as shells say it.
BY_SIGNAL = 128
# Seconds until a signal is sent again; a finalizer is over by then.
SOON = 0.01


def end_silently() -> None:
    """Let Ctrl-C end this process, which was started, at once and without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


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
            self._on_dropped()
            _send_soon(error.number)
        elif before is not None:
            before(unraisable)


_RECEIVE = SendingAgain._receive.__code__


def comes_later(number: int, frame: Optional[FrameType]) -> bool:
    """Asked by a handler before it raises: whether ``SendingAgain`` is at work. What is raised
    there is dropped, and nobody is told. The signal comes again soon, then.

    number (int): Of the signal.
    frame (Optional[FrameType]): As the handler got it.
    """
    while frame is not None:
        if frame.f_code is _RECEIVE:
            _send_soon(number)
            return True
        frame = frame.f_back
    return False


def _send_soon(number: int) -> None:
    # A Thread's start() would wait for it to run, and give the signal time to come back.
    _thread.start_new_thread(_send, (number,))


def _send(number: int) -> None:
    time.sleep(SOON)
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:  # Windows.
        _thread.interrupt_main(signal.Signals(number))
