"""A worker that is a process of its own."""

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
    """Represents a worker of another process: each method that is called here is called there.
    An error there is returned as a ``Failure``, and so is the end of the process.

    number (int): Number of the worker, from 0.
    make_worker (Callable[..., Worker]): A function of a module, called there with the number
        and the arguments.
    arguments (Dict[str, Any]): By name; they must be picklable.
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
        """Wait until the worker exists."""
        return self._answer(self._note_start)

    def _note_start(self, _: Any) -> None:
        self._has_started = True

    def run(self, tell: Callable[[Any], None], *arguments: Any) -> Any:
        """As that of a worker (see ``Crew``)."""
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
        """Return the exit code, or None if the process still runs after ``seconds``, or if its
        object is closed."""
        with suppress(ValueError):  # Closed.
            if connection.wait([self._process.sentinel], seconds):
                # If two threads waited for the process at once, one would find no such process.
                with self._reaping:
                    self._process.join()
                    return self._process.exitcode
        return None


@contextmanager
def worker_processes(
    n_workers: int, make_worker: Callable[..., Any], arguments: Dict[str, Any]
) -> Iterator[List[WorkerProcess]]:
    """Run one process per worker, started with "spawn", while the context is open. A process
    ends as soon as its parent is gone; it leaves SIGINT, SIGTERM and SIGHUP to the parent.

    make_worker, arguments: As of ``WorkerProcess``.
    RAISES (ConfigError): In a process that still imports a script.
    """
    check_script_is_guarded('[runner] executor = "process"', REMEDY)
    workers: List[WorkerProcess] = []
    end = partial(_end, workers)
    # Runs at the end of the program, before multiprocessing waits for processes without a limit.
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
    """End processes, in bounded time; work in progress is lost."""
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
    """Make a worker and answer calls until the pipe is closed. If the parent ends, this process
    ends at once.

    pipe (Connection): Receives calls and sends answers: (value, is_answer).
    make_worker (Callable[[], Worker]): Called first.
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
    """Wait until the parent is gone, then end this process, whatever it is doing."""
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
