"""Handlers for the signals that end a command at any time: print one line, and exit with the code
that shells use. (Training has its own handlers, see ``training/interruption.py``.)"""

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Callable, Optional, Union

from ..signals import BY_SIGNAL, SIGNALS, EndedBySignal


def receive_by(handler: Union[signal.Handlers, Callable[..., None]]) -> None:
    """Set the handler of all signals, except those that the process ignores (nohup)."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def leave(number: int, frame: Optional[FrameType] = None) -> None:
    """End the process at once, because there is nothing to undo before and after a command."""
    with suppress(OSError):
        os.write(2, b"\n[!] Interrupted\n")
    os._exit(BY_SIGNAL + number)


def end(number: int, frame: Optional[FrameType] = None) -> None:
    """End the command, which undoes unfinished work; a second signal ends it at once.

    RAISES (EndedBySignal): Always.
    """
    receive_by(leave)
    raise EndedBySignal(number)
