"""Workers that are processes."""

import atexit
import multiprocessing
import os
import selectors
import signal
import socket
import sys
import time
import weakref
from collections import deque
from contextlib import contextmanager
from multiprocessing import connection, resource_tracker
from multiprocessing.context import SpawnProcess
from typing import Any, Deque, Iterator, List, Optional, Set

from ..errors import ConfigError, Problem, ProtocolError, WorkerError
from ..worlds.world_worker import Answer
from .calls import FEWER, Failure
from .channel import Channel, pack
from .shared_arrays import SharedArrays, check_platform
from .worker_process import READY, SIGNALS, STARTED, Recipe, run_worker

# Calls of so many bytes may not fit in between: one that would make them more is sent when
# the worker has answered those before.
LARGE = 32768
# How long a worker with nothing to do may take to receive one.
SEND_SECONDS = 60.0
GUARD = (
    "A worker that is a process imports the script that was started: put all that the script "
    'does under `if __name__ == "__main__":`, or set executor = "thread"'
)
NO_FILE = (
    "A worker that is a process imports the script that was started, and this one is no file, "
    'as from standard input: save it as one, or set executor = "thread"'
)


class ProcessWorkers:
    """One process for each worker (see ``worlds.Workers``), started afresh ("spawn"). A
    process whose parent is gone ends at once; SIGINT and SIGTERM it leaves to the parent.

    recipe (Recipe): How each makes its worker.
    n_workers (int): How many, 1 or more.
    shared (Optional[SharedArrays]): What all of them and this process have in common.
    start_seconds (float): How long they may take to make their workers.
    stop_seconds (float): How long ``stop`` waits for those that are in the middle of a
        call, before it kills them.
    RAISES (WorkerError): If a worker could not be made.
    RAISES (ConfigError): On Windows, and in a process that still imports a script.
    """

    _is_stopped = True  # Until there is something to stop.

    def __init__(
        self,
        recipe: Recipe,
        n_workers: int,
        shared: Optional[SharedArrays] = None,
        *,
        start_seconds: float = 600.0,
        stop_seconds: float = 5.0,
    ):
        check_platform()
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            text = '[hogwild] executor = "process" was met while a worker was importing the script'
            raise ConfigError([Problem("", text, GUARD)])
        self.n_workers = n_workers
        self.stop_seconds = stop_seconds
        self._answers: Deque[Answer] = deque()
        # By worker: the bytes of each call that is not answered.
        self._due: List[Deque[int]] = [deque() for _ in range(n_workers)]
        self._dead: Set[int] = set()
        self._has_started = [False] * n_workers
        self._channels: List[Channel] = []
        self._processes: List[SpawnProcess] = []
        self._selector = selectors.DefaultSelector()
        # At the end of the program, before multiprocessing waits for processes without limit.
        self._at_exit = _Stop(self)
        atexit.register(self._at_exit)
        self._is_stopped = False
        try:
            with _signals_blocked():
                for number in range(n_workers):
                    try:
                        self._start(number, recipe, shared)
                    except OSError as error:
                        text = f"its process could not be started: {error.strerror}"
                        raise WorkerError(number, f"{text}. {FEWER}") from None
            self._await_all(start_seconds)
        except BaseException:
            self.stop()
            raise

    def _start(self, number: int, recipe: Recipe, shared: Optional[SharedArrays]) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._channels.append(Channel(ours))
        with theirs:
            process = multiprocessing.get_context("spawn").Process(
                target=run_worker,
                args=(number, theirs, recipe, shared),
                name=f"worker {number}",
                daemon=True,
            )
            process.start()
        self._processes.append(process)
        self._due[number].extend((0, 0))  # STARTED and READY.
        self._selector.register(ours, selectors.EVENT_READ, number)
        self._selector.register(process.sentinel, selectors.EVENT_READ, number)

    def _await_all(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        n_ready = 0
        while n_ready < self.n_workers:
            answer = self.wait(max(0.0, until - time.monotonic()))
            if answer is None:
                late = next(number for number, due in enumerate(self._due) if due)
                raise WorkerError(late, f"was not ready within {seconds:g} seconds")
            if answer.call == STARTED:
                self._has_started[answer.worker] = True
            n_ready += answer.call == READY

    def ask(self, worker: int, call: str, *arguments: Any) -> None:
        """Have a method of a worker called, behind what it was asked before.

        RAISES (WorkerError): If it has died.
        """
        if self._is_stopped:
            raise ProtocolError("ProcessWorkers.ask() was called after stop().")
        packed = pack((call, arguments))
        until = time.monotonic() + SEND_SECONDS
        # It may be sending, too: that goes first, or both would wait for each other.
        due = self._due[worker]
        while due and len(packed) + sum(due) > LARGE and worker not in self._dead:
            left = until - time.monotonic()
            if left <= 0:
                break
            self._receive(left)
        try:
            self._channels[worker].send(packed, max(0.1, until - time.monotonic()))
        except TimeoutError:
            text = f"took in no call within {SEND_SECONDS:g} seconds: it hangs, or is very slow"
            raise WorkerError(worker, text) from None
        except OSError:
            raise self._death(worker) from None
        due.append(len(packed))

    def wait(self, seconds: float) -> Optional[Answer]:
        """The next answer of any worker; None if there was none for so long.

        RAISES (WorkerError): If a worker has raised an error, or has died.
        """
        until = time.monotonic() + seconds
        while not self._answers:
            left = until - time.monotonic()
            self._receive(max(0.0, left))
            # What it said last, such as its error, comes first.
            if self._dead and not self._answers:
                raise self._death(min(self._dead))
            if left <= 0:
                break
        if not self._answers:
            return None
        answer = self._answers.popleft()
        if isinstance(answer.value, Failure):
            raise answer.value.error(answer.worker)
        return answer

    def _receive(self, seconds: float) -> None:
        """Take in what comes; note who has died."""
        if self._is_stopped:
            raise ProtocolError("ProcessWorkers.wait() was called after stop().")
        events = [key for key, _ in self._selector.select(0.0 if self._dead else seconds)]
        sending = [key.data for key in events if key.fileobj is self._channels[key.data].end]
        for number in sending:
            try:
                answers = self._channels[number].receive()
            except EOFError:
                self._bury(number)
            else:
                self._answers += answers
                for _ in answers:
                    self._due[number].popleft()
        for key in events:
            # Ended; what it sent before has all been read.
            if key.data not in sending:
                self._bury(key.data)

    def _bury(self, number: int) -> None:
        self._dead.add(number)
        self._selector.unregister(self._channels[number].end)
        self._selector.unregister(self._processes[number].sentinel)

    def _death(self, worker: int) -> WorkerError:
        process = self._processes[worker]
        process.join(self.stop_seconds)
        code = process.exitcode
        text = f"its process {process.pid} "
        if code is None:
            text += "closed its connection"
        elif code < 0:
            text += f"was killed by {_signal_name(-code)}"
            text += " (too little memory?)" * (-code == signal.SIGKILL)
        else:
            text += f"ended, with exit code {code}"
        if not self._has_started[worker]:
            text += " before it could begin; see its own message. " + _advice()
        return WorkerError(worker, text.rstrip())

    def stop(self, seconds: Optional[float] = None) -> None:
        """End all processes, in bounded time; those in the middle of a call for longer
        are killed.

        seconds (Optional[float]): In place of ``stop_seconds``.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        atexit.unregister(self._at_exit)
        for channel in self._channels:
            try:
                channel.send(pack(("", ())), 0.1)
                # Whoever is in the middle of a call finds that nobody hears its answer.
                channel.end.shutdown(socket.SHUT_RD)
            except OSError:
                pass
        try:
            self._await_end(self.stop_seconds if seconds is None else seconds)
        finally:
            for process in self._processes:
                process.kill()
                process.join(5.0)
                if process.exitcode is not None:
                    process.close()
            self._selector.close()
            for channel in self._channels:
                channel.close()

    def _await_end(self, seconds: float) -> None:
        going = [process.sentinel for process in self._processes]
        until = time.monotonic() + seconds
        while going and time.monotonic() < until:
            ended = connection.wait(going, until - time.monotonic())
            going = [sentinel for sentinel in going if sentinel not in ended]

    def __del__(self) -> None:
        self.stop()


class _Stop:
    """Stops workers that nobody has stopped, if they are still there."""

    def __init__(self, workers: ProcessWorkers):
        self.workers = weakref.ref(workers)

    def __call__(self) -> None:
        workers = self.workers()
        if workers is not None:
            workers.stop()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """A process that starts inherits it; so it has nothing to say to Ctrl-C before it can
    ignore it. Here they wait."""
    resource_tracker.ensure_running()  # As it starts, it would let them through again.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _advice() -> str:
    """What to do if a script was started, rather than a module (-m), or nothing with a name."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or getattr(main, "__spec__", None) is not None:
        return ""
    return GUARD if os.path.isfile(path) else NO_FILE
