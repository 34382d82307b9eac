"""A worker in a process of its own."""

import multiprocessing
import os
import pickle
import sys
import threading
from contextlib import suppress
from functools import partial
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any, Callable, Dict, Mapping, NamedTuple, NoReturn, Optional, Sequence

from ..errors import WorkerError
from .failure import Failure
from .starting import how_it_ended, leave_signals_to_parent, starting_processes


class Advice(NamedTuple):
    """Hold advice for users whose worker processes do not work.

    without (str): How to train without worker processes.
    with_fewer (str): How to start fewer processes.
    """

    without: str
    with_fewer: str


class WorkerProcess:
    """Represent a worker in another process, to which all method calls are forwarded. If a method
    fails or the process ends, the call returns a ``Failure``.

    number (int): Number of the worker, from 0.
    make_worker (Callable[..., Any]): Picklable function that the process calls to make the worker.
        It is sent when the process has started: ``start`` would wait for ever to write large
        arguments to a process that has died.
    advice (Advice): Advice for the user, for error messages.
    start_method (str): "fork", "forkserver" or "spawn".
    inherited (Optional[Dict[str, Any]]): Arguments of ``make_worker`` that only a new process can
        get, such as semaphores; if it is forked, of any kind.
    is_daemon (bool): Whether the worker cannot start processes itself.
    RAISES (WorkerError): If the system cannot start another process.
    """

    world = None

    def __init__(
        self,
        number: int,
        make_worker: Callable[..., Any],
        advice: Advice,
        start_method: str = "spawn",
        inherited: Optional[Dict[str, Any]] = None,
        is_daemon: bool = True,
    ):
        self.advice, self._has_started, self._make_worker = advice, False, make_worker
        self._reaping = threading.Lock()
        context = multiprocessing.get_context(start_method)
        try:
            with starting_processes():
                self._pipe, theirs = context.Pipe()
                with theirs:
                    self._process = context.Process(  # type: ignore[attr-defined]
                        target=run_worker,
                        args=(theirs, inherited or {}, advice, os.getpid()),
                        name=f"worker {number}",
                        daemon=is_daemon,
                    )
                    self._process.start()
            self._pid = self._process.pid
        except OSError as error:
            text = f"its process could not be started: {error.strerror or error}"
            raise WorkerError(number, f"{text}. {advice.with_fewer}") from None

    def begin(self) -> Any:
        """Wait until the process has made its worker.

        RETURNS (Any): None, or a ``Failure``.
        """
        with suppress(OSError):  # The process has died: reading the answer returns a failure.
            self._pipe.send(self._make_worker)
        return self._answer(self._note_start)

    def _note_start(self, _: Any) -> None:
        self._has_started = True

    def run(self, tell: Callable[[Any], None], *arguments: Any) -> Any:
        """Call ``run`` of the worker.

        tell (Callable[[Any], None]): Function that gets the interim messages of the worker.
        """
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
            code = self.exit_code(5.0)  # The connection is closed before the process ends.
            return Failure(how_it_ended(self._pid, code, self._has_started, self.advice.without))

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

    def close(self) -> None:
        """Let the process end after its call. No thread may be waiting for an answer."""
        self._pipe.close()

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        with suppress(ValueError):  # Closed.
            self._process.kill()
            if self.exit_code(5.0) is not None:
                self._process.close()


def answer_of(worker: Any, call: str, arguments: Sequence[Any], tell: Any = None) -> Any:
    """Call a method of a worker and catch its errors.

    call (str): Name of the method.
    arguments (Sequence[Any]): Its arguments.
    tell (Callable[[Any], None]): Function that sends an interim message; passed to ``run`` only.
    RETURNS (Any): The return value, or a ``Failure`` if the method raised an error.
    """
    is_run = call == "run"
    given = (tell, *arguments) if is_run else arguments
    try:
        return getattr(worker, call)(*given)
    except BaseException as error:  # Including SystemExit, which would end only this thread.
        return Failure.of(error, worker.world if is_run else None)


# --- in the process ---------------------------------------------------------------------


def run_worker(pipe: Connection, inherited: Mapping[str, Any], advice: Advice, parent: int) -> None:
    """Make a worker and execute calls until the pipe is closed. If the parent ends, this process
    ends at once.

    pipe (Connection): Pipe that brings ``make_worker``, then calls, and takes pairs (value,
        is_answer).
    inherited, advice: See ``WorkerProcess``.
    parent (int): Process id of the parent.
    """
    leave_signals_to_parent()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    tell = partial(_send, pipe, advice, is_answer=False)
    tell(None)  # Python has started, and has imported the parent's script.
    try:
        worker = pipe.recv()(**inherited)
    except BaseException as error:
        _send(pipe, advice, Failure.of(error))
        return
    _send(pipe, advice, None)
    while True:
        try:
            call, given = pipe.recv()
        except (EOFError, OSError):
            return
        _send(pipe, advice, answer_of(worker, call, given, tell))


def _send(pipe: Connection, advice: Advice, value: Any, is_answer: bool = True) -> None:
    """Send a value to the parent; instead of a value that cannot be pickled, send a failure."""
    if isinstance(value, Failure):
        value = value._replace(cause=None)
    try:
        message = pickle.dumps((value, is_answer), protocol=5)
    except Exception as error:
        text = f"a value cannot be sent between processes: {error}. Return other values, or"
        message = pickle.dumps((Failure(f"{text} {advice.without}"), True))
    try:
        pipe.send_bytes(message)
    except OSError:  # The parent has closed the pipe.
        _exit_now()


def _end_with(parent: int) -> None:
    """Wait until the parent has ended, then end this process, whatever it is doing."""
    known = multiprocessing.parent_process()
    is_child = os.getppid() == parent  # Otherwise it is a child of a fork server.
    while known is not None:
        # A sentinel alone is not enough: forked processes keep their siblings' sentinels open.
        if connection.wait([known.sentinel], 1.0 if is_child else None):
            break
        if is_child and os.getppid() != parent:
            break
    _exit_now()


def _exit_now() -> NoReturn:
    """End this process, because its parent needs no more answers."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(0)
