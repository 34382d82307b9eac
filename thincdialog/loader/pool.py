"""A pool of workers that execute tasks in threads of this process, or in processes.

In a ``ProcessPoolExecutor``, all processes write into one pipe. If a process is killed while it
writes, the parent waits forever for the rest. Here, each process has its own pipe, and its own
thread that reads the pipe.
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

# Function that makes the function that executes tasks; each worker calls it once.
MakeWork = Callable[[], Callable[[Any], Any]]
NO_WORKERS = "set [loader] workers = 0"
CANNOT_GO = (
    "an example cannot be sent from a process to another: {}. Return other values, or "
    f"{NO_WORKERS}"
)
# Niceness of worker processes: they only read ahead, so the steps of training have priority.
NICENESS = 5
FEWER = "Set [loader] workers lower, or raise the limit (ulimit -a shows all)"


class Worker:
    """Execute tasks of several jobs, in the calling thread.

    makes (Dict[int, MakeWork]): The ``MakeWork`` of jobs, by the numbers of the jobs.
    """

    def __init__(self, makes: Dict[int, MakeWork]):
        self._makes = makes
        self._works: Dict[int, Callable[[Any], Any]] = {}

    def carry_out(
        self, jobs: AbstractSet[int], job: int, make_work: Optional[MakeWork], task: Any
    ) -> Any:
        """Execute a task.

        jobs (AbstractSet[int]): Numbers of the jobs that have not ended.
        job (int): Number of the task's job.
        make_work (Optional[MakeWork]): The job's ``MakeWork``; None if the worker already has it.
        task (Any): The task.
        RETURNS (Any): The result, or a ``Failure``.
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
    """Execute tasks in a process, which is not started again if it dies.

    number (int): Number of the worker, from 0.
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
        """Execute a task in the process (see ``Worker.carry_out``).

        RETURNS (Any): The result; a ``Failure`` also if the process has ended.
        """
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
            self._process.join(5.0)  # The process closes its connection before it ends.
            pid, code = self._process.pid, self._process.exitcode
            self._end = Failure(how_it_ended(pid, code, self._has_begun, NO_WORKERS))
            return self._end

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        if self._end is None:
            self._process.kill()
            self._process.join(5.0)


class Pool:
    """Run workers, each in a thread of its own. A worker's process starts at its first task, and
    ends with the pool or with the program.

    n_workers (int): Number of workers.
    start_method (Optional[str]): How processes are started: "fork", "forkserver" or "spawn"; None
        for workers without processes.
    RAISES (WorkerError): If the system cannot start another thread.
    """

    def __init__(self, n_workers: int, start_method: Optional[str] = None):
        self.n_workers, self.start_method = n_workers, start_method
        # The ``MakeWork`` of jobs that forked processes inherit, because it cannot be pickled.
        self.makes: Dict[int, MakeWork] = {}
        # Numbers of jobs that have not ended.
        self.jobs: Set[int] = set()
        self.tasks: "SimpleQueue[Any]" = SimpleQueue()
        self._processes: List[ProcessWorker] = []
        self._starting, self._is_over = threading.Lock(), False
        # End processes at exit, before multiprocessing waits for them without a time limit.
        atexit.register(self.end)
        for number in range(n_workers):
            context = contextvars.copy_context()
            thread = threading.Thread(
                target=context.run,
                args=(self._run, number),
                name=f"loader {number}",
                daemon=True,  # A reader that hangs must not prevent the program from ending.
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
                del made  # Keep no result in memory while the thread waits.
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
        """Kill all processes, whatever they are doing, and end threads after their tasks."""
        atexit.unregister(self.end)
        with self._starting:
            self._is_over = True
            for process in self._processes:
                process.kill()
            self._processes.clear()
        for _ in range(self.n_workers):
            self.tasks.put(None)


class Job:
    """Submit tasks that belong together to a pool.

    pool (Pool): The pool that executes the tasks.
    make_work (MakeWork): Function that makes the function that executes the tasks, in each worker.
        If workers are processes, it must be picklable, unless ``is_forked``.
    is_forked (bool): Whether ``make_work`` cannot be pickled. Then the pool must be used for this
        job only, and start its processes with "fork".
    """

    _numbers = count()

    def __init__(self, pool: Pool, make_work: MakeWork, is_forked: bool = False):
        self.pool, self.make_work, self.number = pool, make_work, next(Job._numbers)
        pool.jobs.add(self.number)
        if is_forked:
            pool.makes[self.number] = make_work

    def submit(self, task: Any) -> "Future[Any]":
        """Submit a task, which is begun after all tasks that were submitted before.

        RETURNS (Future): Future of the result. If the task fails, it raises a ``DialogError`` that
            names the worker.
        """
        future: "Future[Any]" = Future()
        self.pool.tasks.put((future, self, task))
        return future

    def end(self) -> None:
        """End the job, so that workers drop its state."""
        self.pool.jobs.discard(self.number)
        if self.number in self.pool.makes:
            self.pool.end()


# --- in the process ---------------------------------------------------------------------


def run_worker(pipe: Connection, makes: Dict[int, MakeWork], parent: int) -> None:
    """Execute tasks in this process until the parent closes the pipe or ends.

    pipe (Connection): Pipe that brings arguments of ``Worker.carry_out()`` and takes the results.
    makes (Dict[int, MakeWork]): See ``Worker``.
    parent (int): Process id of the parent.
    """
    leave_signals_to_parent()
    os.nice(NICENESS)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    worker = Worker(makes)
    with suppress(EOFError, OSError):
        pipe.send(None)  # Report that this process has begun.
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
    """Wait until the parent has ended, then end this process, whatever it is doing."""
    known = multiprocessing.parent_process()
    is_forked = os.getppid() == parent
    while known is not None:
        # A sentinel alone is not enough: forked processes keep their siblings' sentinels open.
        if connection.wait([known.sentinel], 1.0 if is_forked else None):
            break
        if is_forked and os.getppid() != parent:
            break
    os._exit(0)
