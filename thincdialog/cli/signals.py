"""Signals that end a command, from its first line to its last: one line, and the exit code that
shells give. (Training receives them by itself, see ``training/interruption.py``.)"""

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Callable, Optional, Union

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP.
NUMBERS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
BY_SIGNAL = 128


class Ended(KeyboardInterrupt):
    """A signal ended a command.

    number (int): Of the signal.
    """

    def __init__(self, number: int):
        super().__init__()
        self.exit_code = BY_SIGNAL + number


def receive_by(handler: Union[signal.Handlers, Callable[..., None]]) -> None:
    """Have signals received, but for those that the process was told to ignore (nohup)."""
    for number in NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def leave(number: int, frame: Optional[FrameType] = None) -> None:
    """End the process at once: there is nothing to undo before and behind a command."""
    with suppress(OSError):
        os.write(2, b"\n[!] Interrupted\n")
    os._exit(BY_SIGNAL + number)


def end(number: int, frame: Optional[FrameType] = None) -> None:
    """End the command, which undoes what is half done; another signal ends it at once.

    RAISES (Ended): Always.
    """
    receive_by(leave)
    raise Ended(number)
