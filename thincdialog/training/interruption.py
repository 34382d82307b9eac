"""SIGINT, SIGTERM and SIGHUP: training ends after the current step and saves the model."""

import signal
import threading
from contextlib import contextmanager
from types import FrameType
from typing import Any, Callable, Dict, Iterator, Optional

from ..signals import SIGNALS, EndedBySignal

# A function that shows the user one line of text.
Note = Callable[[str], None]
# The exit code "try again later", for schedulers that restart a job.
TEMPORARY = 75


class Interrupted(EndedBySignal):
    """A signal ended training. The text of the exception is the folder that was saved last, or "".

    number (int): Number of the signal.
    saved (str): Folder of the checkpoint to resume from; "" if there is none.
    model (str): Folder of the model that was saved last, for runs without checkpoints; "" if there
        is none.
    """

    def __init__(self, number: int, saved: str = "", model: str = ""):
        super().__init__(number, saved or model)
        self.saved, self.model = saved, model

    @property
    def name(self) -> str:
        """Name of the signal."""
        return signal.Signals(self.number).name

    @property
    def exit_code(self) -> int:
        """The exit code: 75 if SIGTERM or SIGHUP ended a run that can be resumed."""
        if self.number != signal.SIGINT and self.saved:
            return TEMPORARY
        return super().exit_code


class Interruption:
    """Receive signals in a block of the main thread. A signal that the process already ignores
    stays ignored.

    Outside ``waiting``, the first signal raises ``Interrupted`` at once. Within ``waiting``, the
    signal only sets ``received``, which training checks when it can stop. A second SIGINT always
    raises.

    received (Optional[int]): Number of the first signal.
    is_urgent (bool): Whether a second SIGINT came: then nothing more is saved.
    """

    def __init__(self) -> None:
        self.received: Optional[int] = None
        self.is_urgent = False
        self._waits = False
        self._before: Dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before is not None and before is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *error: object) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def _receive(self, number: int, frame: Optional[FrameType]) -> None:
        if self.received is None:
            self.received = number
            if not self._waits:
                raise Interrupted(number)
        elif number == signal.SIGINT:
            self.is_urgent = True
            raise Interrupted(number)

    @contextmanager
    def waiting(self, waits: bool = True) -> Iterator[None]:
        """Make signals wait in the block, or (False) make them raise at once.

        waits (bool): Whether signals wait.
        RAISES (Interrupted): If signals do not wait, and a signal was received before.
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
        """Prevent signals from interrupting the block. A signal raises at the end of the block,
        unless signals also wait outside it.

        RAISES (Interrupted): If a signal was received, and signals do not wait outside the block.
        """
        waits = self._waits
        with self.waiting():
            yield
        if self.received is not None and not waits:
            raise Interrupted(self.received)
