"""A pool of workers that execute tasks in threads of this process, or in processes.

In a ``ProcessPoolExecutor``, all processes write into one pipe. If a process is killed while it
writes, the parent waits forever for the rest. Here, each process has its own pipe, and its own
thread that reads the pipe.
"""

import atexit
import contextvars
import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import AbstractSet, Any, Callable, Dict, List, Optional, Set

from ..errors import WorkerError
from .failure import Failure
from .worker_process import Advice, WorkerProcess, answer_of

# Function that makes the function that executes tasks; each worker calls it once.
MakeWork = Callable[[], Callable[[Any], Any]]
NO_WORKERS = "set [loader] workers = 0"
# Niceness of worker processes: they only read ahead, so the steps of training have priority.
NICENESS = 5
FEWER = "Set [loader] workers lower, or raise the limit (ulimit -a shows all)"


class Worker:
    """Execute tasks of several jobs, in the calling thread.

    inherited (Optional[MakeWork]): The ``MakeWork`` of jobs that do not send theirs.
    """

    world = None

    def __init__(self, inherited: Optional[MakeWork] = None):
        self._inherited = inherited
        self._works: Dict[int, Callable[[Any], Any]] = {}

    def carry_out(
        self, jobs: AbstractSet[int], job: int, make_work: Optional[MakeWork], task: Any
    ) -> Any:
        """Execute a task.

        jobs (AbstractSet[int]): Numbers of the jobs that have not ended.
        job (int): Number of the task's job.
        make_work (Optional[MakeWork]): The job's ``MakeWork``; None if the worker already has it.
        task (Any): The task.
        RETURNS (Any): The result.
        """
        for ended in self._works.keys() - jobs:
            del self._works[ended]
        if job not in self._works:
            make_work = make_work or self._inherited
            assert make_work is not None
            self._works[job] = make_work()
        return self._works[job](task)


def make_worker(inherited: Optional[MakeWork]) -> Worker:
    """Return the worker of a process."""
    with suppress(OSError):  # A sandbox may forbid it.
        os.nice(NICENESS)
    return Worker(inherited)


class Pool:
    """Run workers, each in a thread of its own. A worker's process starts at its first task, and
    ends with the pool or with the program.

    n_workers (int): Number of workers.
    start_method (Optional[str]): How processes are started: "fork", "forkserver" or "spawn"; None
        for workers without processes.
    inherited (Optional[MakeWork]): The ``MakeWork`` of the pool's only job if it cannot be pickled;
        forked processes inherit it.
    RAISES (WorkerError): If the system cannot start another thread.
    """

    def __init__(
        self,
        n_workers: int,
        start_method: Optional[str] = None,
        inherited: Optional[MakeWork] = None,
    ):
        self.n_workers, self.start_method, self.inherited = n_workers, start_method, inherited
        # Numbers of jobs that have not ended.
        self.jobs: Set[int] = set()
        self.tasks: "SimpleQueue[Any]" = SimpleQueue()
        self._processes: List[WorkerProcess] = []
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
        """Execute tasks in the thread of a worker until the pool ends."""
        worker: Any = None
        while (given := self.tasks.get()) is not None:
            future, job, task = given
            if future.set_running_or_notify_cancel():
                try:
                    worker = worker or self._start(number)
                    has_it = number in job.workers or self.inherited is not None
                    make_work = None if has_it else job.make_work
                    given = frozenset(self.jobs), job.number, make_work, task
                    made = answer_of(worker, "carry_out", given)
                    if isinstance(made, Failure):
                        raise made.error(number)
                    job.workers.add(number)
                    future.set_result(made)
                except Exception as error:
                    future.set_exception(error)
                made = None  # Keep no result in memory while the thread waits.
            del given, future, job, task

    def _start(self, number: int) -> Any:
        if self.start_method is None:
            return Worker()
        with self._starting:
            if self._is_over:
                raise WorkerError(number, "the pool has ended")
            advice, inherited = Advice(NO_WORKERS, FEWER), {"inherited": self.inherited}
            worker = WorkerProcess(number, make_worker, advice, self.start_method, inherited)
            self._processes.append(worker)
        worker.begin()
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
        If workers are processes, it must be picklable, unless they have inherited it.
    workers (Set[int]): Numbers of the workers that have got ``make_work``.
    """

    _numbers = count()

    def __init__(self, pool: Pool, make_work: MakeWork):
        self.pool, self.make_work, self.number = pool, make_work, next(Job._numbers)
        self.workers: Set[int] = set()
        pool.jobs.add(self.number)

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
        if self.pool.inherited is not None:
            self.pool.end()
