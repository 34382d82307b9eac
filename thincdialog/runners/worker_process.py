"""What runs in the process of a worker."""

import multiprocessing
import os
import shutil
import signal
import sys
import threading
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any, Callable, Dict

from threadpoolctl import threadpool_limits

from .worker import Failure

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# A call that ends the process.
ENDS = "(end)"


def run_worker(
    number: int, pipe: Connection, make_worker: Callable[..., Any], arguments: Dict[str, Any]
) -> None:
    """Make a worker and answer calls until told to end. If the parent goes, so does this
    process, at once.

    number (int): Of the worker, from 0.
    pipe (Connection): Where calls come from, and answers go: (value, is_answer).
    make_worker (Callable[..., Worker]): Called with the number and the arguments.
    arguments (Dict[str, Any]): By name; a `folder` is a temporary one, which goes with the
        parent if it has not taken it away.
    """
    for each in SIGNALS:  # They go to the whole group: the parent decides what they mean.
        signal.signal(each, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    folder = arguments.get("folder")
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    _tell(pipe, None, False)  # Python has started, and has imported the parent's script.
    try:
        worker = make_worker(number, **arguments)
        threadpool_limits(1, user_api="blas")
    except BaseException as error:
        _tell(pipe, Failure.of(error), True)
        return
    _tell(pipe, None, True)
    while True:
        try:
            call, given = pipe.recv()
        except EOFError:
            _leave()
        if call == ENDS:
            return
        try:
            if call == "run":
                given = (lambda reports: _tell(pipe, reports, False),)
            value = getattr(worker, call)(*given)
        except BaseException as error:
            value = Failure.of(error, worker.world if call == "run" else None)
        _tell(pipe, value, True)


def _tell(pipe: Connection, value: Any, is_answer: bool) -> None:
    if isinstance(value, Failure):
        value = value._replace(cause=None)
    try:
        pipe.send((value, is_answer))
    except OSError:  # Nobody hears it.
        _leave()
    except Exception as error:  # It cannot go to another process.
        pipe.send((Failure.of(error)._replace(cause=None), True))


def _end_with_parent(folder: Any) -> None:
    """Wait until the parent is gone, and end the process wherever it is."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)  # Several may try at once.
        _leave()


def _leave() -> None:
    """Nobody is interested any more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os._exit(0)
