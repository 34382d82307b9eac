"""Workers that carry out tasks: threads of this process, or processes.

In a ``ProcessPoolExecutor`` all processes write into one pipe. If one is killed while it writes,
the parent waits forever for the rest. Here each process has its own pipe and its own thread that
reads it.
"""

import atexit
import contextvars
import multiprocessing
import os
import pickle
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from multiprocessing import connection
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import AbstractSet, Any, Callable, Dict, List, Optional, Set

from ..errors import WorkerError
from .failure import Failure
from .starting import how_it_ended, leave_signals_to_parent, starting_processes

# Makes the function that carries out tasks; each worker calls it once.
MakeWork = Callable[[], Callable[[Any], Any]]
NO_WORKERS = "set [loader] workers = 0"
CANNOT_GO = (
    "an example cannot be sent from a process to another: {}. Return other values, or "
    f"{NO_WORKERS}"
)
# Workers read ahead: where processors are few, the steps go first.
NICENESS = 5
FEWER = "Set [loader] workers lower, or raise the limit (ulimit -a shows all)"


class Worker:
    """Carry out tasks of several jobs, in the thread that calls it.

    makes (Dict[int, MakeWork]): The ``MakeWork`` of jobs, by the job's number.
    """

    def __init__(self, makes: Dict[int, MakeWork]):
        self._makes = makes
        self._works: Dict[int, Callable[[Any], Any]] = {}

    def carry_out(
        self, jobs: AbstractSet[int], job: int, make_work: Optional[MakeWork], task: Any
    ) -> Any:
        """Return the result of a task, or a ``Failure``.

        jobs (AbstractSet[int]): Numbers of the jobs that have not ended.
        job (int): Number of the task's job.
        make_work (Optional[MakeWork]): That of the job; None if the worker has it.
        """
        for ended in self._works.keys() - jobs:
            del self._works[ended]
        try:
            if job not in self._works:
                self._works[job] = (make_work or self._makes[job])()
            return self._works[job](task)
        except BaseException as error:
            return Failure.of(error)


class ProcessWorker:
    """Carry out tasks in a process, which is not started again if it dies.

    number (int): The worker's number, from 0.
    start_method (str): "fork", "forkserver" or "spawn".
    makes (Dict[int, MakeWork]): See ``Worker``; empty unless the process is forked.
    """

    def __init__(self, number: int, start_method: str, makes: Dict[int, MakeWork]):
        self._known, self._has_begun = set(makes), False
        self._end: Optional[Failure] = None
        context = multiprocessing.get_context(start_method)
        try:
            with starting_processes():
                self._pipe, theirs = context.Pipe()
                with theirs:
                    self._process = context.Process(  # type: ignore[attr-defined]
                        target=run_worker,
                        args=(theirs, makes, os.getpid()),
                        name=f"loader {number}",
                        daemon=True,
                    )
                    self._process.start()
        except OSError as error:
            text = f"its process could not be started: {error.strerror or error}"
            self._end = Failure(f"{text}. {FEWER}")

    def carry_out(
        self, jobs: AbstractSet[int], job: int, make_work: Optional[MakeWork], task: Any
    ) -> Any:
        """See ``Worker``. If the process has ended, this is a ``Failure``, too."""
        if self._end is not None:
            return self._end
        try:
            if not self._has_begun:
                self._pipe.recv()
                self._has_begun = True
            self._pipe.send((jobs, job, None if job in self._known else make_work, task))
            self._known.add(job)
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(5.0)  # It closes its connection first.
            pid, code = self._process.pid, self._process.exitcode
            self._end = Failure(how_it_ended(pid, code, self._has_begun, NO_WORKERS))
            return self._end

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        if self._end is None:
            self._process.kill()
            self._process.join(5.0)


class Pool:
    """Run workers, each in a thread of its own. Their processes start at the first task, and end
    with the pool or the program.

    n_workers (int): Number of workers.
    start_method (Optional[str]): How processes are started; None for threads only.
    """

    def __init__(self, n_workers: int, start_method: Optional[str] = None):
        self.n_workers, self.start_method = n_workers, start_method
        # The ``MakeWork`` of jobs that forked processes inherit, as it cannot be sent to them.
        self.makes: Dict[int, MakeWork] = {}
        # Numbers of jobs that have not ended.
        self.jobs: Set[int] = set()
        self.tasks: "SimpleQueue[Any]" = SimpleQueue()
        self._processes: List[ProcessWorker] = []
        self._starting, self._is_over = threading.Lock(), False
        # At the end of the program, before multiprocessing waits for processes without limit.
        atexit.register(self.end)
        for number in range(n_workers):
            context = contextvars.copy_context()
            thread = threading.Thread(
                target=context.run,
                args=(self._run, number),
                name=f"loader {number}",
                daemon=True,  # A reader that hangs does not keep the program from ending.
            )
            try:
                thread.start()
            except RuntimeError as error:
                raise WorkerError(number, f"{error}. {FEWER}") from None

    def _run(self, number: int) -> None:
        worker: Any = None
        while (given := self.tasks.get()) is not None:
            future, job, task = given
            if future.set_running_or_notify_cancel():
                try:
                    worker = worker or self._start(number)
                    made = worker.carry_out(frozenset(self.jobs), job.number, job.make_work, task)
                except Exception as error:
                    made = Failure.of(error)
                if isinstance(made, Failure):
                    future.set_exception(made.error(number))
                else:
                    future.set_result(made)
                del made  # Nothing is kept while the thread waits.
            del given, future, job, task

    def _start(self, number: int) -> Any:
        if self.start_method is None:
            return Worker({})
        with self._starting:
            if self._is_over:
                raise RuntimeError("the pool has ended")
            worker = ProcessWorker(number, self.start_method, self.makes)
            self._processes.append(worker)
            return worker

    def end(self) -> None:
        """End all processes, whatever they are doing, and threads after their tasks."""
        atexit.unregister(self.end)
        with self._starting:
            self._is_over = True
            for process in self._processes:
                process.kill()
            self._processes.clear()
        for _ in range(self.n_workers):
            self.tasks.put(None)


class Job:
    """Hold tasks of a pool that belong together.

    pool (Pool): The pool that carries them out.
    make_work (MakeWork): Makes the function that carries them out, in each worker. It must be
        possible to pickle it if workers are processes.
    is_forked (bool): Whether it cannot be pickled: then the pool is for this job only, and forks.
    """

    _numbers = count()

    def __init__(self, pool: Pool, make_work: MakeWork, is_forked: bool = False):
        self.pool, self.make_work, self.number = pool, make_work, next(Job._numbers)
        pool.jobs.add(self.number)
        if is_forked:
            pool.makes[self.number] = make_work

    def submit(self, task: Any) -> "Future[Any]":
        """Have a task carried out, after those that were submitted before.

        RETURNS (Future): Future of its result. A ``DialogError`` names the worker.
        """
        future: "Future[Any]" = Future()
        self.pool.tasks.put((future, self, task))
        return future

    def end(self) -> None:
        """Let workers drop the job's state."""
        self.pool.jobs.discard(self.number)
        if self.number in self.pool.makes:
            self.pool.end()


# --- in the process ---------------------------------------------------------------------


def run_worker(pipe: Connection, makes: Dict[int, MakeWork], parent: int) -> None:
    """Carry out tasks until the parent closes the pipe or ends.

    pipe (Connection): Brings arguments of ``Worker.carry_out()`` and takes the results.
    makes (Dict[int, MakeWork]): See ``Worker``.
    parent (int): Process id of the parent.
    """
    leave_signals_to_parent()
    os.nice(NICENESS)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    worker = Worker(makes)
    with suppress(EOFError, OSError):
        pipe.send(None)  # It has begun.
        while True:
            made = worker.carry_out(*pipe.recv())
            if isinstance(made, Failure):
                made = made._replace(cause=None)
            try:
                message = pickle.dumps(made, protocol=5)
            except Exception as error:
                message = pickle.dumps(Failure(CANNOT_GO.format(error)))
            pipe.send_bytes(message)
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


def _end_with(parent: int) -> None:
    """Wait until the parent has ended, and end this process, whatever it is doing."""
    known = multiprocessing.parent_process()
    is_forked = os.getppid() == parent
    while known is not None:
        # Forked processes hold their siblings' sentinels open.
        if connection.wait([known.sentinel], 1.0 if is_forked else None):
            break
        if is_forked and os.getppid() != parent:
            break
    os._exit(0)
