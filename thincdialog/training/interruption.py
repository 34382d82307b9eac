"""SIGINT, SIGTERM, SIGHUP: training ends behind the step that it is in, with all it has learnt."""

import signal
import threading
from contextlib import contextmanager
from types import FrameType
from typing import Any, Dict, Iterator, Optional

from ..signals import SIGNALS, EndedBySignal, SendingAgain, comes_later

# "Try again later", for schedulers that start a job anew.
TEMPORARY = 75


class Interrupted(EndedBySignal):
    """A signal ended training. As text: the folder of what was saved last, or "".

    number (int): Of the signal.
    saved (str): Folder of the checkpoint to go on from; "" if there is none.
    model (str): Folder of the model that was saved last, which is all where no checkpoints
        are written; "" if there is none.
    """

    def __init__(self, number: int, saved: str = "", model: str = ""):
        super().__init__(number, saved or model)
        self.saved, self.model = saved, model

    @property
    def name(self) -> str:
        """Of the signal."""
        return signal.Signals(self.number).name

    @property
    def exit_code(self) -> int:
        """75 if SIGTERM or SIGHUP ended a run that goes on when it is started once more."""
        if self.number != signal.SIGINT and self.saved:
            return TEMPORARY
        return super().exit_code


class Interruption:
    """Receives the signals while it is entered, in the main thread; a signal that the
    process was told to ignore stays ignored.

    At first a signal raises ``Interrupted`` at once; within ``waiting`` it is only noted,
    for ``received`` to be asked at the next good moment. A second SIGINT always raises.

    received (Optional[int]): Number of the first signal.
    is_urgent (bool): Whether a second one came: then nothing more shall be saved.
    """

    def __init__(self) -> None:
        self.received: Optional[int] = None
        self.is_urgent = False
        self._waits = False
        self._before: Dict[int, Any] = {}
        self._again = SendingAgain(Interrupted, self._forget)

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before is not None and before is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._receive)
            self._again.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._again.__exit__()
        while self._before:
            signal.signal(*self._before.popitem())

    def _receive(self, number: int, frame: Optional[FrameType]) -> None:
        if comes_later(number, frame):
            return
        if self.received is None:
            self.received = number
            if not self._waits:
                raise Interrupted(number)
        elif number == signal.SIGINT:
            self.is_urgent = True
            raise Interrupted(number)

    def _forget(self) -> None:
        """Python dropped what a signal raised. The signal comes again, as the first."""
        if not self.is_urgent:
            self.received = None

    @contextmanager
    def waiting(self, waits: bool = True) -> Iterator[None]:
        """A stretch in which signals wait, or (False) one within it in which they do not.

        RAISES (Interrupted): If signals shall not wait, and one does.
        """
        before, self._waits = self._waits, waits
        try:
            if self.received is not None and not waits:
                raise Interrupted(self.received)
            yield
        finally:
            self._waits = before

    @contextmanager
    def shielding(self) -> Iterator[None]:
        """A stretch that a signal must not leave half done: it waits, and raises behind it, if
        signals do not wait around it.

        RAISES (Interrupted): If a signal came that shall not wait.
        """
        waits = self._waits
        with self.waiting():
            yield
        if self.received is not None and not waits:
            raise Interrupted(self.received)
