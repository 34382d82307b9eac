"""Results come in the order of the tasks, whichever worker did them, and arrays are unchanged."""

import os
import time

import numpy as np
import pytest

from tests.loader.sources import Echo
from thincdialog.loader.ordered import AHEAD, Spent, ordered
from thincdialog.loader.pool import Job, Pool


def help_of(kind, n, make_work):
    return Job(Pool(n, None if kind == "thread" else kind), make_work)


@pytest.mark.parametrize("kind", ["thread", "fork", "forkserver"])
@pytest.mark.parametrize("may_help", [False, True])
def test_ordered_results_small_and_large(kind, may_help):
    # Some arrays fit into a pipe at once, others do not.
    tasks = [np.arange(size) for size in (0, 3, 100_000, 5000, 1, 400_000) * 5]
    job = help_of(kind, 2, Echo())
    found = list(ordered(iter(tasks), Echo(), lambda spent: job, may_help=may_help))
    job.pool.end()
    assert len(found) == len(tasks)
    for (array, _), task in zip(found, tasks):
        np.testing.assert_array_equal(array, task)
    processes = {process for _, process in found}
    if kind == "thread":
        assert processes == {os.getpid()}
    elif not may_help:
        assert os.getpid() not in processes


@pytest.mark.parametrize("n_ahead", [0, 50])
def test_ordered_takes_tasks_only_as_they_are_needed(n_ahead):
    asked = []

    def tasks():
        for number in range(10**9):
            asked.append(number)
            yield number

    job = help_of("thread", 3, Echo())
    mapped = ordered(tasks(), Echo(), lambda spent: job, lambda: n_ahead)
    assert [next(mapped)[0] for _ in range(100)] == list(range(100))
    mapped.close()
    job.pool.end()
    assert len(asked) == 99 + n_ahead + AHEAD * 3


def test_ordered_works_in_this_process_until_workers_help():
    seen, jobs = [], []

    def find_help(spent):
        if spent.wall > 0.05:
            jobs.append(help_of("fork", 1, Echo()))
            return jobs[0]

    def make_slow():
        return lambda task: time.sleep(0.01) or (task, os.getpid())

    for task, process in ordered(iter(range(100)), make_slow, find_help, may_help=False):
        assert task == len(seen)
        seen.append(process == os.getpid())
    jobs[0].pool.end()
    n_here = seen.count(True)
    assert 1 <= n_here <= 6 and seen == [True] * n_here + [False] * (100 - n_here)
    assert len(jobs) == 1


@pytest.mark.parametrize("kind", [None, "thread"])
def test_ordered_raises_errors_in_the_order_of_the_tasks(kind):
    def work(task):
        if task == 20:
            raise KeyError(task)
        return task

    job = kind and help_of(kind, 2, lambda: work)
    mapped = ordered(iter(range(40)), lambda: work, lambda spent: job)
    seen = []
    with pytest.raises(Exception, match="20"):
        for value in mapped:
            seen.append(value)
    if job:
        job.pool.end()
    assert seen == list(range(20))


def test_spent_distinguishes_sleep_from_work():
    begin = Spent.now()
    time.sleep(0.2)
    asleep = Spent.now().since(begin)
    assert asleep.wall > 0.2 and asleep.computing < 0.1
    begin = Spent.now()
    while time.thread_time() < begin.computing + 0.2:
        pass
    at_work = Spent.now().since(begin)
    assert at_work.computing >= 0.2
    assert asleep.plus(at_work).wall == asleep.wall + at_work.wall
