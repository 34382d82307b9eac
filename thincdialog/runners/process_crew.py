"""Workers that are processes of their own."""

import atexit
import multiprocessing
import os
import signal
import sys
import time
import weakref
from contextlib import contextmanager, suppress
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Callable, Dict, Iterator, List

from ..errors import ConfigError, Problem, WorkerError
from .crew import FEWER, Crew, Told
from .worker_process import ENDS, SIGNALS, run_worker

GUARD = (
    "A worker that is a process imports the script that was started: put all that the script "
    'does under `if __name__ == "__main__":`, or set executor = "thread"'
)
NO_FILE = (
    "A worker that is a process imports the script that was started, and this one is no file, "
    'as from standard input: save it as one, or set executor = "thread"'
)


class ProcessCrew(Crew):
    """One process for each worker, started afresh ("spawn"). A process whose parent is gone
    ends at once; SIGINT and SIGTERM it leaves to the parent.

    make_worker (Callable[..., Worker]): A function of a module, called in each process with
        its number and the arguments.
    n_workers (int): How many, 1 or more.
    arguments (Dict[str, Any]): By name; what can go to another process.
    stop (Callable[[], None]): Makes workers come back from ``run``.
    start_seconds (float): How long they may take to make their workers.
    RAISES (WorkerError): If a worker could not be made.
    RAISES (ConfigError): In a process that still imports a script.
    """

    def __init__(
        self,
        make_worker: Callable[..., Any],
        n_workers: int,
        arguments: Dict[str, Any],
        stop: Callable[[], None] = lambda: None,
        is_ending: Callable[[], bool] = lambda: False,
        *,
        start_seconds: float = 600.0,
        **times: float,
    ):
        super().__init__(n_workers, is_ending, **times)
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            text = '[runner] executor = "process" was met while a worker was importing the script'
            raise ConfigError([Problem("", text, GUARD)])
        self.stop = stop
        self._processes: List[SpawnProcess] = []
        self._connections: List[Connection] = []
        self._has_started = [False] * n_workers
        # At the end of the program, before multiprocessing waits for processes without limit.
        self._at_exit = _End(self)
        atexit.register(self._at_exit)
        try:
            with _signals_blocked():
                for number in range(n_workers):
                    self._start(number, make_worker, arguments)
            self._await_all(start_seconds)
        except BaseException:
            self.has_failed = True
            self.end()
            raise

    def _start(
        self, number: int, make_worker: Callable[..., Any], arguments: Dict[str, Any]
    ) -> None:
        spawning = multiprocessing.get_context("spawn")
        try:
            ours, theirs = spawning.Pipe()
            self._connections.append(ours)
            with theirs:
                process = spawning.Process(
                    target=run_worker,
                    args=(number, theirs, make_worker, arguments),
                    name=f"worker {number}",
                    daemon=True,
                )
                process.start()
        except OSError as error:
            text = f"its process could not be started: {error.strerror}"
            raise WorkerError(number, f"{text}. {FEWER}") from None
        self._processes.append(process)
        self.busy.append(number)

    def _await_all(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self.busy:
            told = self.listen(max(0.0, until - time.monotonic()))
            for each in told:
                self._has_started[each.worker] = True
            if not told and time.monotonic() >= until:
                raise WorkerError(min(self.busy), f"was not ready within {seconds:g} seconds")

    def ask(self, worker: int, call: str, *arguments: Any) -> None:
        try:
            self._connections[worker].send((call, arguments))
        except OSError:
            raise self._death(worker) from None

    def hear(self, seconds: float) -> List[Told]:
        ends = {process.sentinel: number for number, process in enumerate(self._processes)}
        speak = {pipe: number for number, pipe in enumerate(self._connections)}
        told: List[Told] = []
        dead = []
        ready = connection.wait([*speak, *ends], max(0.0, seconds))
        for each in ready:
            if each in ends:
                dead.append(ends[each])
                continue
            pipe: Any = each
            try:
                while pipe.poll():
                    told.append(Told(speak[pipe], *pipe.recv()))
            except (EOFError, OSError):
                dead.append(speak[pipe])
        # What they said last, such as an error, comes first.
        if dead and not told:
            self.has_failed = True
            raise self._death(min(dead))
        return told

    def _death(self, worker: int) -> WorkerError:
        process = self._processes[worker]
        process.join(5.0)
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

    def end(self) -> None:
        atexit.unregister(self._at_exit)
        self.stop()
        for pipe in self._connections:
            with suppress(OSError):
                pipe.send((ENDS, ()))
        idle = not self.busy or self.has_failed or self.is_ending()
        until = time.monotonic() + (1.0 if idle else 5.0)
        going = [process.sentinel for process in self._processes]
        while going and time.monotonic() < until:
            ended = connection.wait(going, until - time.monotonic())
            going = [sentinel for sentinel in going if sentinel not in ended]
        for process in self._processes:
            process.kill()
            process.join(5.0)
            if process.exitcode is not None:
                process.close()
        for pipe in self._connections:
            pipe.close()
        self._processes, self._connections = [], []


class _End:
    """Ends workers that nobody has ended, if they are still there."""

    def __init__(self, crew: ProcessCrew):
        self.crew = weakref.ref(crew)

    def __call__(self) -> None:
        crew = self.crew()
        if crew is not None:
            crew.end()


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
