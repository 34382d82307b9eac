"""Helpers to start worker processes, and to describe how a process ended that ended too early."""

import multiprocessing
import os
import signal
import sys
import threading
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Iterator, Optional

from ..errors import ConfigError, Problem
from ..signals import SIGNALS

SAFE_PATH = "PYTHONSAFEPATH"
# Lock for threads that start processes, because starting changes the environment and the signal
# mask.
_turn = threading.RLock()
GUARD = (
    "A worker process imports the script that was started: put all code that the script runs "
    'under `if __name__ == "__main__":`, or {}'
)
NO_FILE = (
    "A worker process imports the script that was started, but this script is not a "
    "file (perhaps it came from standard input): save it as a file, or {}"
)


@contextmanager
def starting_processes() -> Iterator[None]:
    """Start Python processes safely within this context. They import nothing from the current
    folder (Python 3.11 and later), because it may contain untrusted files, and they get no signal
    before they call ``leave_signals_to_parent()``."""
    with _turn:
        before = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"
        try:
            resource_tracker.ensure_running()  # Start it first, because its start unblocks signals.
            # New processes inherit the mask. Until it is reset, signals to this process wait.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            try:
                yield
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        finally:
            if before is None:
                del os.environ[SAFE_PATH]
            else:
                os.environ[SAFE_PATH] = before


def leave_signals_to_parent() -> None:
    """Ignore signals in a process that was started, because a signal goes to the whole process
    group and the parent decides how to respond."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def check_script_is_guarded(what: str, remedy: str) -> None:
    """Check that this process is not a worker that is still importing the script.

    what (str): Name of the setting or function that is used here.
    remedy (str): How to avoid workers.
    RAISES (ConfigError): If this process is a worker that is importing the script.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        text = f"{what} was used while a worker was importing the script"
        raise ConfigError([Problem("", text, GUARD.format(remedy))])


def how_it_ended(pid: Optional[int], code: Optional[int], has_begun: bool, remedy: str) -> str:
    """Return a description of how a worker process ended.

    pid (Optional[int]): Process id.
    code (Optional[int]): Exit code; None if the process is still running.
    has_begun (bool): Whether the process reported that it had started.
    remedy (str): Setting that avoids processes.
    """
    text = f"its process {pid} "
    if code is None:
        text += "closed its connection"
    elif code < 0:
        known = {each.value for each in signal.Signals}
        name = signal.Signals(-code).name if -code in known else f"signal {-code}"
        text += f"was killed by {name}" + " (too little memory?)" * (-code == signal.SIGKILL)
    else:
        text += f"ended, with exit code {code}"
    if not has_begun:
        text += f" before it could start; see its own message. {_advice(remedy)}"
    return text.rstrip()


def _advice(remedy: str) -> str:
    """Return advice for a program that was started as a script; "" for a module (``-m``) or an
    interactive session."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or getattr(main, "__spec__", None) is not None:
        return ""
    return (GUARD if os.path.isfile(path) else NO_FILE).format(remedy)
