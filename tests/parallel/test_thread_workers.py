import contextvars
import sys
import threading
import time

import pytest
from thincdialog.parallel import ThreadWorkers

from tests.parallel import toys
from thincdialog.errors import ProtocolError, WorkerError
from thincdialog.worlds import HogwildWorld


def make(n_workers: int = 2, stop_seconds: float = 10.0, **settings) -> ThreadWorkers:
    def make_worker(worker: int) -> toys.NotingWorker:
        return toys.make_worker(worker, {}, n_workers=n_workers, **settings)

    return ThreadWorkers(make_worker, n_workers, stop_seconds=stop_seconds)


@pytest.fixture
def workers():
    workers = make()
    yield workers
    workers.stop()


def test_thread_workers_answer_in_the_order_in_which_they_were_asked(workers):
    for n in range(50):
        workers.ask(n % 2, "echo", n)
    answers = [workers.wait(10) for _ in range(50)]
    assert workers.wait(0) is None
    for worker in range(2):
        own = [answer.value for answer in answers if answer.worker == worker]
        assert own == list(range(worker, 50, 2))
    assert {answer.call for answer in answers} == {"echo"}


def test_thread_workers_wait_as_long_as_they_are_told(workers):
    began = time.monotonic()
    assert workers.wait(0.2) is None
    assert 0.2 <= time.monotonic() - began < 2


def test_thread_workers_run_at_the_same_time():
    # Each waits for the other.
    barrier = threading.Barrier(3, timeout=10)

    class Meeting(toys.NotingWorker):
        def meet(self) -> int:
            return barrier.wait()

    workers = ThreadWorkers(lambda worker: Meeting(worker, toys.Noting(), None), 3)
    for worker in range(3):
        workers.ask(worker, "meet")
    assert sorted(workers.wait(10).value for _ in range(3)) == [0, 1, 2]
    workers.ask(0, "shutdown")  # It has no world to shut down; nor does it matter at the end.
    with pytest.raises(WorkerError, match="AttributeError"):
        workers.wait(10)
    workers.stop()


@pytest.mark.parametrize(
    "call, arguments, text",
    [
        ("fail", ["raise"], "ZeroDivisionError: nothing is left"),
        ("fail", ["data"], "days.txt:7  the sky is 'green', expected blue or grey"),
        ("fail", ["interrupt"], "KeyboardInterrupt"),
        ("fail", ["leave"], "SystemExit: 4"),
        ("nonsense", [], "AttributeError: 'NotingWorker' object has no attribute 'nonsense'"),
        ("echo", [], r"TypeError: NotingWorker.echo\(\) missing 1 required .*"),
    ],
)
def test_thread_workers_an_error_of_any_kind_comes_back(workers, call, arguments, text):
    workers.ask(1, call, *arguments)
    with pytest.raises(WorkerError, match=f"^Worker 1: {text}") as caught:
        workers.wait(10)
    assert caught.value.examples == []
    assert caught.value.traceback == "" or caught.value.traceback.startswith("Traceback")
    # The worker is still there.
    workers.ask(1, "echo", 5)
    assert workers.wait(10).value == 5


def test_thread_workers_that_cannot_be_made_leave_nothing():
    n_before = threading.active_count()

    def make_worker(worker: int) -> toys.NotingWorker:
        if worker == 1:
            return toys.broken_worker(worker, {}, how="raise")
        return toys.make_worker(worker, {})

    with pytest.raises(ZeroDivisionError):
        ThreadWorkers(make_worker, 2)
    assert threading.active_count() == n_before


def test_thread_workers_that_the_system_does_not_start_leave_nothing():
    n_before, size = threading.active_count(), threading.stack_size()
    interval = sys.getswitchinterval()

    def make_worker(worker: int) -> toys.NotingWorker:
        if worker == 2:
            threading.stack_size(1 << 46)  # More than there can be.
        return toys.make_worker(worker, {})

    try:
        with pytest.raises(WorkerError, match=r"^Worker 0: .*thread.* Set \[hogwild\] workers"):
            ThreadWorkers(make_worker, 3)
    finally:
        threading.stack_size(size)
    assert threading.active_count() == n_before
    assert sys.getswitchinterval() == interval


def test_thread_workers_leave_out_what_they_have_not_begun():
    workers = make(1, delay=0.05, n_episodes=1000)
    for _ in range(200):
        workers.ask(0, "parley", None)
    began = time.monotonic()
    workers.stop()
    assert time.monotonic() - began < 3
    with pytest.raises(ProtocolError, match=r"after stop\(\)"):
        workers.ask(0, "echo", 1)


@pytest.fixture
def hanging():
    """Workers of which the second is in a call that does not end."""
    hangs, release = threading.Event(), threading.Event()

    class Hanging(toys.NotingWorker):
        def hang(self) -> None:
            hangs.set()
            release.wait(20)

    workers = ThreadWorkers(
        lambda worker: Hanging(worker, toys.Noting(), None), 2, stop_seconds=0.2
    )
    workers.ask(1, "hang")
    assert hangs.wait(10)
    yield workers
    release.set()


def test_thread_workers_stop_in_bounded_time_whatever_they_do(hanging):
    began = time.monotonic()
    with pytest.raises(WorkerError, match="Worker 1: still in the middle of a call 0.2 seconds"):
        hanging.stop()
    assert time.monotonic() - began < 2
    hanging.stop()


def test_thread_workers_an_error_is_not_covered_by_another_that_hangs(hanging):
    hanging.ask(0, "fail", "data")
    with pytest.raises(WorkerError, match="days.txt"):
        with HogwildWorld(hanging, max_wait=10) as world:
            world.workers.wait(10)


def test_thread_workers_use_one_blas_thread_each_and_restore_it():
    from threadpoolctl import threadpool_info, threadpool_limits

    def n_threads():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        first, second = make(), make()
        for workers in (first, second):
            workers.ask(1, "blas_threads")
            assert set(workers.wait(10).value) == {1}
        first.stop()
        assert n_threads() == {1}
        second.stop()
        second.stop()
        assert n_threads() == {2}


def test_thread_workers_restore_blas_threads_after_an_error():
    from threadpoolctl import threadpool_info, threadpool_limits

    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(WorkerError):
            with HogwildWorld(make(wrong={"3/0": "raise"}), max_wait=10) as world:
                toys.run_epoch(world)
        found = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
    assert found == {2}
    assert sys.getswitchinterval() == pytest.approx(0.005)


def test_thread_workers_are_in_the_context_of_who_made_them():
    # Thinc keeps the current ops in a context variable.
    variable: contextvars.ContextVar = contextvars.ContextVar("variable", default="none")
    variable.set("here")

    class Looking(toys.NotingWorker):
        def look(self) -> str:
            return variable.get()

    workers = ThreadWorkers(lambda worker: Looking(worker, toys.Noting(), None), 1)
    workers.ask(0, "look")
    assert workers.wait(10).value == "here"
    workers.stop()


def test_thread_workers_that_are_forgotten_end():
    n_before = threading.active_count()
    world = HogwildWorld(make(delay=0.001), max_wait=10)
    world.parley()
    del world
    assert threading.active_count() == n_before
