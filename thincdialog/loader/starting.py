"""What holds while worker processes are started, whoever starts them."""

import multiprocessing
import os
import signal
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker, spawn, util
from pathlib import Path
from typing import Any, Dict, Iterator, List

from ..files.held import held, temporary_folder
from ..signals import SIGNALS

SAFE_PATH = "PYTHONSAFEPATH"
# Of the temporary folder; short, as paths of sockets must be.
NAME = "thincdialog"
# Kept here, as a process that was forked drops what is to be done at the end of its parent.
_own_folder = ExitStack()
_UNTOLD = str(Path(__file__).with_name("untold.py"))


@contextmanager
def starting_processes() -> Iterator[None]:
    """A stretch in which Python processes are started. They import nothing from the current
    folder (Python 3.11 and later), which may be a stranger's; they get no signal before they
    call ``leave_signals_to_parent``; and they say nothing if this one dies before it has told
    them what to do."""
    before, command_line = os.environ.get(SAFE_PATH), spawn.get_command_line

    def quiet_command_line(**given: Any) -> List[str]:
        words = command_line(**given)
        if "-c" in words:  # Not in a program that was frozen.
            at = words.index("-c") + 1
            words[at] = f"import runpy; runpy.run_path({_UNTOLD!r}); {words[at]}"
        return words

    os.environ[SAFE_PATH] = "1"
    spawn.get_command_line = quiet_command_line
    try:
        resource_tracker.ensure_running()  # As it starts, it would let signals through again.
        # A process that starts inherits it. Here they wait.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    finally:
        spawn.get_command_line = command_line
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


def use_own_folder() -> None:
    """Give the fork server's socket a temporary folder of this program's. The one that Python
    makes would stay if this process was killed; ours goes when the next one starts.

    RAISES (OSError): If it cannot be made.
    """
    known: Dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    if known.get("tempdir") is None:
        folder = _own_folder.enter_context(held(temporary_folder() / NAME, 0o700, is_folder=True))
        known["tempdir"] = str(folder)
        # When Python itself would remove its own, behind the end of the fork server.
        util.Finalize(None, _own_folder.close, exitpriority=-100)


def leave_signals_to_parent() -> None:
    """In a process that was started: they go to the whole group, and the parent decides what
    they mean."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
