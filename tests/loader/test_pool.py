"""Workers do tasks, report why they cannot, and end with the program."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.loader.sources import Echo
from thincdialog.errors import WorkerError
from thincdialog.loader.pool import Job, Pool

METHODS = ("fork", "forkserver", "spawn")
KILLED = r"^Worker 0: its process \d+ was killed by SIGKILL \(too little memory\?\)"


def deadly():
    """Kills its process at task 3, and returns an object that cannot be sent at task 4."""

    def work(task):
        if task == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return (lambda: task) if task == 4 else task

    return work


@pytest.fixture
def make_pool():
    pools = []

    def make(*given):
        pools.append(Pool(*given))
        return pools[-1]

    yield make
    for pool in pools:
        pool.end()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("method", METHODS)
def test_pool_says_what_killed_a_worker(make_pool, method):
    pool = make_pool(1, method)
    futures = [Job(pool, deadly).submit(task) for task in range(6)]
    assert [future.result(60) for future in futures[:3]] == [0, 1, 2]
    for future in futures[3:]:
        with pytest.raises(WorkerError, match=f"{KILLED}$"):
            future.result(60)


def kill_at_start():
    os.kill(os.getpid(), signal.SIGKILL)


class KillsWhereItArrives:
    """Kills the process that unpickles it, before the worker has begun."""

    def __reduce__(self):
        return kill_at_start, ()


@pytest.mark.parametrize("method", METHODS[1:])
def test_pool_says_what_killed_a_worker_while_it_starts(make_pool, method):
    pool = make_pool(1, method)
    pool.inherited = KillsWhereItArrives()
    with pytest.raises(WorkerError, match=f"{KILLED} before it could start; see its own message"):
        Job(pool, deadly).submit(0).result(60)


def test_pool_says_that_a_result_cannot_be_sent(make_pool):
    job = Job(make_pool(1, "fork"), deadly)
    text = "a value cannot be sent between processes: .*lambda.*workers = 0$"
    with pytest.raises(WorkerError, match=f"^Worker 0: {text}"):
        job.submit(4).result(60)
    assert job.submit(5).result(60) == 5


class LateWork:
    """Fails to make its work once."""

    def __init__(self):
        self.n_calls = 0

    def __call__(self):
        self.n_calls += 1
        if self.n_calls == 1:
            raise OSError("no file yet")
        return lambda task: 2 * task


def test_pool_makes_work_again_that_could_not_be_made(make_pool):
    job = Job(make_pool(1), LateWork())
    first, *others = [job.submit(task) for task in range(3)]
    with pytest.raises(WorkerError, match="^Worker 0: OSError: no file yet"):
        first.result(60)
    assert [each.result(60) for each in others] == [2, 4]


def test_pool_that_has_ended_starts_no_process(make_pool):
    """A program may end while tasks are waiting."""
    pool = make_pool(1, "fork")
    pool._starting.acquire()
    future = Job(pool, deadly).submit(0)
    pool._is_over = True
    pool._starting.release()
    with pytest.raises(WorkerError, match="the pool has ended"):
        future.result(60)


class CountedEcho(Echo):
    """Counts how often its work object is created and deleted in a process."""

    def __call__(self):
        return Counted()


class Counted:
    made = lost = 0

    def __init__(self):
        Counted.made += 1

    def __call__(self, task):
        return os.getpid(), Counted.made, Counted.lost

    def __del__(self):
        Counted.lost += 1


@pytest.mark.parametrize("method", METHODS)
def test_pool_serves_one_job_after_another_with_the_same_process(make_pool, method):
    pool, found = make_pool(1, method), []
    for _ in range(3):
        job = Job(pool, CountedEcho())
        found += [job.submit(task).result(60) for task in range(2)]
        job.end()
    processes, made, lost = zip(*found)
    assert len({*processes}) == 1 and processes[0] != os.getpid()
    assert made == (1, 1, 2, 2, 3, 3) and lost == (0, 0, 1, 1, 2, 2)


@pytest.mark.parametrize("method", METHODS)
def test_pool_leaves_signals_to_the_parent(make_pool, method):
    pool = make_pool(1, method)
    job = Job(pool, Echo())
    _, process = job.submit(0).result(60)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(process, number)
    assert job.submit(1).result(60) == (1, process)


HANGING = """
import sys, time
from tests.loader.sources import Echo
from thincdialog.loader.pool import Job, Pool

class Hangs(Echo):
    def work(self, task):
        print("hangs", flush=True)
        time.sleep(1000)

if __name__ == "__main__":
    pool = Pool(2, sys.argv[1] if sys.argv[1] != "thread" else None)
    job = Job(pool, Hangs())
    futures = [job.submit(task) for task in range(5)]
    while not futures[1].running():
        time.sleep(0.01)
    time.sleep(1.0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", [*METHODS, "thread"])
def test_pool_whose_work_hangs_lets_the_program_end(tmp_path, root, method):
    (tmp_path / "hanging.py").write_text(HANGING)
    given = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "hanging.py", method]
    begin = time.monotonic()
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "hangs" in done.stdout
    assert time.monotonic() - begin < 60


class Large(Echo):
    """Returns its process id and 8 MB, which take longer to write than to create."""

    def work(self, task):
        return os.getpid(), bytes(1 << 23)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS[:2])
def test_pool_does_not_wait_for_a_worker_that_was_killed_while_it_wrote(make_pool, method):
    rng = random.Random(0)
    for _ in range(20):
        pool = make_pool(2, method)
        job = Job(pool, Large())
        process, _ = job.submit(0).result(60)
        futures = [job.submit(task) for task in range(30)]
        time.sleep(0.03 * rng.random())
        os.kill(process, signal.SIGKILL)
        errors = [future.exception(60) for future in futures]
        assert errors[0] is None or isinstance(errors[0], WorkerError)
        assert any(isinstance(error, WorkerError) for error in errors)
        pool.end()
