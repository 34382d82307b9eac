"""The execution of tasks by several workers, with results in the order of the tasks."""

import time
from collections import deque
from concurrent.futures import Future
from itertools import islice
from typing import Any, Callable, Deque, Generator, Iterator, NamedTuple, Optional, Tuple

from .pool import Job, MakeWork

# Number of tasks per worker that are submitted ahead, so that no worker waits for its next task.
AHEAD = 3


class Spent(NamedTuple):
    """Hold the time that this thread has spent.

    wall (float): Wall-clock time in seconds.
    computing (float): CPU time in seconds.
    """

    wall: float = 0.0
    computing: float = 0.0

    @classmethod
    def now(cls) -> "Spent":
        """Return the current readings of both clocks."""
        return cls(time.perf_counter(), time.thread_time())

    def since(self, begin: "Spent") -> "Spent":
        """Return the time since an earlier reading, ``begin``."""
        return Spent(self.wall - begin.wall, self.computing - begin.computing)

    def plus(self, other: "Spent") -> "Spent":
        """Return the sum of this time and another."""
        return Spent(self.wall + other.wall, self.computing + other.computing)


def ordered(
    tasks: Iterator[Any],
    make_work: MakeWork,
    find_help: Callable[[Spent], Optional[Job]],
    n_ahead: Callable[[], int] = int,
    may_help: bool = True,
) -> Generator[Any, None, None]:
    """Execute tasks and yield the results in the order of the tasks. Tasks are executed in this
    process until workers help.

    tasks (Iterator): The tasks; each is read from the iterator when it can be executed.
    make_work (MakeWork): Function that makes the function that executes tasks in this process,
        which gets tasks in ascending order.
    find_help (Callable[[Spent], Optional[Job]]): Function that takes the time spent in this
        process, and returns a job whose workers help, or None.
    n_ahead (Callable[[], int]): Function that returns the number of tasks to execute ahead of time,
        in addition to ``AHEAD`` for each worker.
    may_help (bool): Whether this process also executes tasks instead of waiting.
    RAISES (Exception): The error of a task, after the results of the tasks before it.
    """
    spent = Spent()
    work: Optional[Callable[[Any], Any]] = None
    waiting: Deque[Tuple[Any, "Future[Any]"]] = deque()
    job: Optional[Job] = None

    def here(task: Any) -> "Future[Any]":
        nonlocal work, spent
        begin = Spent.now()
        done: "Future[Any]" = Future()
        try:
            work = work or make_work()
            done.set_result(work(task))
        except Exception as error:
            done.set_exception(error)
        spent = spent.plus(Spent.now().since(begin))
        return done

    try:
        while True:
            job = job or find_help(spent)
            if job is None:
                waiting.extend((task, here(task)) for task in islice(tasks, 1))
            else:
                room = n_ahead() + AHEAD * job.pool.n_workers - len(waiting)
                waiting.extend((task, job.submit(task)) for task in islice(tasks, max(0, room)))
            if not waiting:
                return
            while may_help and not waiting[0][1].done():
                # Execute a task here that no worker has begun: only such a task can be cancelled.
                place = next((n for n, (_, each) in enumerate(waiting) if each.cancel()), None)
                if place is None:
                    break
                task = waiting[place][0]
                waiting[place] = task, here(task)
            yield waiting.popleft()[1].result()
    finally:
        for _, future in waiting:
            future.cancel()
        if job is not None:
            job.end()
