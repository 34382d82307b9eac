"""What runs in the process of a worker."""

import multiprocessing
import os
import shutil
import signal
import socket
import sys
import threading
from multiprocessing import connection
from typing import Any, Callable, Dict, NamedTuple, Optional

from ..worlds.world_worker import Answer, WorldWorker
from .blas_threads import limit_this_thread
from .calls import Failure, carry_out, failure_of
from .channel import Channel, pack
from .shared_arrays import SharedArrays

# Calls of nobody that a process answers on its way: Python has started (and has imported
# the script that its parent runs), and the worker is made.
STARTED, READY = "(started)", "(ready)"
SIGNALS = (signal.SIGINT, signal.SIGTERM)
FOREVER = threading.TIMEOUT_MAX


class Recipe(NamedTuple):
    """How a process makes its worker.

    make_worker (Callable[..., WorldWorker]): A function of a module, called with the
        number of the worker, the shared arrays by name, and the arguments.
    arguments (Dict[str, Any]): By name; JSON values, so that they mean the same there.
    folder (Optional[str]): A temporary one that it is made from, which the parent takes away
        afterwards; if the parent is gone before, the process does.
    """

    make_worker: Callable[..., WorldWorker]
    arguments: Dict[str, Any]
    folder: Optional[str] = None


def run_worker(
    number: int, end: socket.socket, recipe: Recipe, shared: Optional[SharedArrays]
) -> None:
    """Answer calls until told to stop. If the parent goes, so does this process, at once.

    number (int): Of the worker, from 0.
    end (socket.socket): Where calls come from, and answers go.
    recipe (Recipe): What to make.
    shared (Optional[SharedArrays]): What it has in common with the others.
    """
    for each in SIGNALS:  # They go to the whole group: the parent decides what they mean.
        signal.signal(each, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    threading.Thread(target=_end_with_parent, args=(recipe.folder,), daemon=True).start()
    end.settimeout(None)
    channel = Channel(end)
    _answer(channel, Answer(number, STARTED, None))
    try:
        arrays = {} if shared is None else shared.arrays
        worker = recipe.make_worker(number, arrays, **recipe.arguments)
        limit_this_thread()
    except BaseException as error:
        _answer(channel, Answer(number, READY, failure_of(error)))
        return
    _answer(channel, Answer(number, READY, None))
    while True:
        try:
            calls = channel.receive()
        except EOFError:
            _leave()
        for call, arguments in calls:
            if not call:
                carry_out(worker, "shutdown", ())
                return
            _answer(channel, Answer(number, call, carry_out(worker, call, arguments)))


def _answer(channel: Channel, answer: Answer) -> None:
    if isinstance(answer.value, Failure):
        answer = answer._replace(value=answer.value._replace(cause=None))
    try:
        packed = pack(answer)
    except Exception as error:
        packed = pack(answer._replace(value=failure_of(error)._replace(cause=None)))
    try:
        # As long as the parent lives, which may be busy with something else.
        channel.send(packed, FOREVER)
    except OSError:
        _leave()


def _end_with_parent(folder: Optional[str]) -> None:
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
