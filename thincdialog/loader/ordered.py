"""Tasks carried out by several workers, with the results in the order of the tasks."""

import time
from collections import deque
from concurrent.futures import Future
from itertools import islice
from typing import Any, Callable, Deque, Generator, Iterator, NamedTuple, Optional, Tuple

from .pool import Job, MakeWork

# Tasks that are under way for each worker, so that it never waits for the next one.
AHEAD = 3


class Spent(NamedTuple):
    """Hold seconds of this thread.

    wall (float): Wall-clock time.
    computing (float): CPU time.
    """

    wall: float = 0.0
    computing: float = 0.0

    @classmethod
    def now(cls) -> "Spent":
        """Return the seconds up to now."""
        return cls(time.perf_counter(), time.thread_time())

    def since(self, begin: "Spent") -> "Spent":
        """Return the seconds after a beginning."""
        return Spent(self.wall - begin.wall, self.computing - begin.computing)

    def plus(self, other: "Spent") -> "Spent":
        """Return the sum of both."""
        return Spent(self.wall + other.wall, self.computing + other.computing)


def ordered(
    tasks: Iterator[Any],
    make_work: MakeWork,
    find_help: Callable[[Spent], Optional[Job]],
    n_ahead: Callable[[], int] = int,
    may_help: bool = True,
) -> Generator[Any, None, None]:
    """Carry out tasks, in this process until workers help, and yield the results in task order.

    tasks (Iterator): The tasks; each is read when it can be carried out.
    make_work (MakeWork): Makes the function that carries out tasks in this process; it is called
        with tasks in rising order.
    find_help (Callable[[Spent], Optional[Job]]): Takes the time spent in this process and returns
        a job of workers that help, or None.
    n_ahead (Callable[[], int]): Number of tasks that are carried out ahead of time, in addition
        to ``AHEAD`` for each worker.
    may_help (bool): Whether this process carries out tasks, too, instead of waiting.
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
                # One that no worker has begun can be cancelled.
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
