"""Signals that end a command, from its first line to its last: one line, and the exit code that
shells give. (Training receives them by itself, see ``training/interruption.py``.)"""

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Callable, Optional, Union

from ..signals import BY_SIGNAL, SIGNALS, EndedBySignal, SendingAgain, comes_later


class Ended(EndedBySignal):
    """A signal ended a command.

    number (int): Of the signal.
    """


def receive_by(handler: Union[signal.Handlers, Callable[..., None]]) -> None:
    """Have signals received, but for those that the process was told to ignore (nohup)."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def leave(number: int, frame: Optional[FrameType] = None) -> None:
    """End the process at once: there is nothing to undo before and behind a command."""
    with suppress(OSError):
        os.write(2, b"\n[!] Interrupted\n")
    os._exit(BY_SIGNAL + number)


def end(number: int, frame: Optional[FrameType] = None) -> None:
    """End the command, which undoes what is half done; another signal ends it at once.

    RAISES (Ended): Where Python does not drop it; where it does, the signal comes again.
    """
    if comes_later(number, frame):
        return
    receive_by(leave)
    raise Ended(number)


def sending_again() -> SendingAgain:
    """A stretch in which a signal that ``end`` receives is not lost where Python drops errors."""
    return SendingAgain(Ended, lambda: receive_by(end))
