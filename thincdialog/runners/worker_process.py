"""Workers in separate processes."""

import atexit
import multiprocessing
import os
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any, Callable, Dict, Iterator, List, Optional

from ..errors import WorkerError
from ..loader.failure import Failure
from ..loader.starting import (
    check_script_is_guarded,
    how_it_ended,
    leave_signals_to_parent,
    starting_processes,
)
from .crew import FEWER, answer_of

REMEDY = 'set executor = "thread"'


class WorkerProcess:
    """Represent a worker in another process, to which all method calls are forwarded. If a method
    fails or the process ends, the call returns a ``Failure``.

    number (int): Number of the worker, from 0.
    make_worker (Callable[..., Worker]): Function at the top level of a module, which is called in
        the process with the number and the arguments.
    arguments (Dict[str, Any]): Picklable arguments by name.
    RAISES (WorkerError): If the system cannot start another process.
    """

    world = None

    def __init__(self, number: int, make_worker: Callable[..., Any], arguments: Dict[str, Any]):
        self._has_started = False
        self._reaping = threading.Lock()
        spawning = multiprocessing.get_context("spawn")
        try:
            self._pipe, theirs = spawning.Pipe()
            with theirs:
                self._process = spawning.Process(
                    target=run_worker,
                    args=(theirs, partial(make_worker, number, **arguments)),
                    name=f"worker {number}",
                    daemon=True,
                )
                self._process.start()
            self._pid = self._process.pid
        except OSError as error:
            text = f"its process could not be started: {error.strerror or error}"
            raise WorkerError(number, f"{text}. {FEWER}") from None

    def begin(self) -> Any:
        """Wait until the process has made its worker.

        RETURNS (Any): None, or a ``Failure``.
        """
        return self._answer(self._note_start)

    def _note_start(self, _: Any) -> None:
        self._has_started = True

    def run(self, tell: Callable[[Any], None], *arguments: Any) -> Any:
        """Call ``run`` of the worker (see ``Crew``)."""
        return self._call("run", *arguments, tell=tell)

    def __getattr__(self, call: str) -> Callable[..., Any]:
        return partial(self._call, call)

    def _call(self, call: str, *arguments: Any, tell: Any = None) -> Any:
        with suppress(OSError):  # The process has died: reading the answer returns a failure.
            self._pipe.send((call, arguments))
        return self._answer(tell)

    def _answer(self, tell: Any) -> Any:
        try:
            while True:
                value, is_answer = self._pipe.recv()
                if is_answer:
                    return value
                tell(value)
        except (EOFError, OSError):
            ended = how_it_ended(self._pid, self.exit_code(5.0), self._has_started, REMEDY)
            return Failure(ended)

    def exit_code(self, seconds: float) -> Optional[int]:
        """Wait for the process to end, up to ``seconds``.

        RETURNS (Optional[int]): The exit code; None if the process still runs, or if its object is
            closed.
        """
        with suppress(ValueError):  # Closed.
            if connection.wait([self._process.sentinel], seconds):
                # If two threads joined the process at once, one of them would find no process.
                with self._reaping:
                    self._process.join()
                    return self._process.exitcode
        return None


@contextmanager
def worker_processes(
    n_workers: int, make_worker: Callable[..., Any], arguments: Dict[str, Any]
) -> Iterator[List[WorkerProcess]]:
    """Run one process per worker, started with "spawn", while the context is open. Each process
    ends as soon as its parent ends, and leaves SIGINT, SIGTERM and SIGHUP to the parent.

    n_workers (int): Number of workers.
    make_worker, arguments: See ``WorkerProcess``.
    RAISES (ConfigError): If this process is itself a worker that is importing the script.
    """
    check_script_is_guarded('[runner] executor = "process"', REMEDY)
    workers: List[WorkerProcess] = []
    end = partial(_end, workers)
    # End processes at exit, before multiprocessing waits for them without a time limit.
    atexit.register(end)
    try:
        with starting_processes():
            for number in range(n_workers):
                workers.append(WorkerProcess(number, make_worker, arguments))
        yield workers
    finally:
        end()
        atexit.unregister(end)


def _end(workers: List[WorkerProcess]) -> None:
    """End the processes, killing them after one second in total; work in progress is lost."""
    for worker in workers:
        worker._pipe.close()
    until = time.monotonic() + 1.0
    while workers:
        worker = workers[-1]
        worker.exit_code(max(0.0, until - time.monotonic()))
        worker._process.kill()
        if worker.exit_code(5.0) is not None:
            worker._process.close()
        workers.pop()


# --- in the process ---------------------------------------------------------------------


def run_worker(pipe: Connection, make_worker: Callable[[], Any]) -> None:
    """Make a worker and execute calls until the pipe is closed. If the parent ends, this process
    ends at once.

    pipe (Connection): Pipe that brings calls and takes pairs (value, is_answer).
    make_worker (Callable[[], Worker]): Function that makes the worker.
    """
    leave_signals_to_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    tell = partial(_send, pipe, is_answer=False)
    tell(None)  # Python has started, and has imported the parent's script.
    try:
        worker = make_worker()
    except BaseException as error:
        _send(pipe, Failure.of(error))
        return
    _send(pipe, None)
    while True:
        try:
            call, given = pipe.recv()
        except (EOFError, OSError):
            return
        _send(pipe, answer_of(worker, tell, call, given))


def _send(pipe: Connection, value: Any, is_answer: bool = True) -> None:
    if isinstance(value, Failure):
        value = value._replace(cause=None)
    try:
        pipe.send((value, is_answer))
    except OSError:  # The parent has closed the pipe.
        _leave()
    except Exception as error:  # The value cannot be pickled.
        pipe.send((Failure.of(error)._replace(cause=None), True))


def _end_with_parent() -> None:
    """Wait until the parent has ended, then end this process, whatever it is doing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        _leave()


def _leave() -> None:
    """End this process, because its parent needs no more answers."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(0)
