"""Workers that are processes: real ones, that die in all ways."""

import gc
import multiprocessing
import os
import resource
import signal
import threading
import time

import numpy
import pytest
from thincdialog.parallel import ProcessWorkers, Recipe, SharedArrays, process_workers

from tests.parallel import toys
from thincdialog.errors import ProtocolError, WorkerError
from thincdialog.worlds import HogwildWorld


@pytest.fixture(scope="module")
def workers():
    """Two that nothing happens to."""
    shared = SharedArrays({"counts": numpy.zeros(2, dtype="f")})
    workers = ProcessWorkers(toys.recipe(n_episodes=21, kind="batch"), 2, shared)
    workers.shared = shared
    yield workers
    workers.stop()


def take(workers: ProcessWorkers, n: int):
    answers = [workers.wait(20) for _ in range(n)]
    assert workers.wait(0) is None
    return answers


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_process_workers_answer_in_the_order_in_which_they_were_asked(workers):
    for n in range(50):
        workers.ask(n % 2, "echo", n)
    answers = take(workers, 50)
    for worker in range(2):
        own = [answer.value for answer in answers if answer.worker == worker]
        assert own == list(range(worker, 50, 2))
    began = time.monotonic()
    assert workers.wait(0.2) is None
    assert 0.2 <= time.monotonic() - began < 2


def test_process_workers_are_other_processes_with_one_blas_thread(workers):
    for worker in range(2):
        workers.ask(worker, "process")
    pids = {answer.value for answer in take(workers, 2)}
    assert len(pids | {os.getpid()}) == 3
    workers.ask(0, "blas_threads")
    assert set(take(workers, 1)[0].value) == {1}


def test_process_workers_show_every_example_once_and_share_arrays(workers):
    world = HogwildWorld(workers, max_wait=20)
    counts = workers.shared.arrays["counts"]
    for epoch in range(3):
        counts[:] = 0
        world.start_epoch(epoch, 1)
        world.reset_metrics()
        results = toys.run_epoch(world)
        assert toys.ids_of(results) == toys.all_ids(21)
        assert counts.tolist() == [3, 3]
        assert len(results) == 6
        report = world.report()
    one = toys.make_worker(0, {}, n_workers=1, n_episodes=21, kind="batch")
    one.start_epoch(2, 1)
    while not one.parley(None).epoch_done:
        pass
    assert report == one.report()


def test_process_workers_state_and_restore(workers):
    world = HogwildWorld(workers, max_wait=20)
    world.start_epoch(0, 3)
    for _ in range(3):
        world.parley()
    state = world.state()
    before = toys.ids_of(world.finished())
    after = toys.ids_of(toys.run_epoch(world))
    world.restore(state)
    assert toys.ids_of(toys.run_epoch(world)) == after
    assert sorted(before + after) == toys.all_ids(21)


def test_process_workers_large_values_pass_both_ways_at_once(workers):
    # More than fits in between, so that each would wait for the other to receive.
    large = os.urandom(3_000_000)
    for _ in range(3):
        for worker in range(2):
            workers.ask(worker, "echo", large)
    assert [answer.value == large for answer in take(workers, 6)] == [True] * 6


def test_process_workers_many_calls_wait_for_large_answers(workers):
    """Calls fill what lies in between while a worker sends; then each would wait for the
    other."""
    for _ in range(40):
        workers.ask(0, "enlarge", bytes(30_000), 40)
    answers = take(workers, 40)
    assert [len(answer.value) for answer in answers] == [1_200_000] * 40


@pytest.mark.parametrize(
    "call, arguments, text",
    [
        ("fail", ["raise"], "ZeroDivisionError: nothing is left"),
        ("fail", ["data"], "days.txt:7  the sky is 'green', expected blue or grey"),
        ("fail", ["interrupt"], "KeyboardInterrupt"),
        ("fail", ["leave"], "SystemExit: 4"),
        ("nonsense", [], "AttributeError: 'NotingWorker' object has no attribute 'nonsense'"),
        ("unspeakable", [], "(AttributeError|PicklingError): Can't .*lambda"),
    ],
)
def test_process_workers_an_error_of_any_kind_comes_back(workers, call, arguments, text):
    workers.ask(1, call, *arguments)
    with pytest.raises(WorkerError, match=f"^Worker 1: {text}"):
        workers.wait(10)
    workers.ask(1, "echo", 5)
    assert take(workers, 1)[0].value == 5


def test_process_workers_leave_signals_to_the_parent(workers):
    for worker in range(2):
        workers.ask(worker, "process")
    for answer in take(workers, 2):
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(answer.value, number)
    for worker in range(2):
        workers.ask(worker, "echo", worker)
    assert len(take(workers, 2)) == 2
    # What was blocked while they started is not blocked any more.
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & {signal.SIGINT, signal.SIGTERM}


def test_process_workers_an_error_in_a_parley_names_examples():
    workers = ProcessWorkers(toys.recipe(n_episodes=30, wrong={"20/0": "raise"}), 2)
    with HogwildWorld(workers, max_wait=20) as world:
        with pytest.raises(WorkerError) as caught:
            toys.run_epoch(world)
    error = caught.value
    assert error.examples == ["20/0"]
    assert 'raise ZeroDivisionError("nothing is left")' in error.traceback
    first, second, *trace = str(error).splitlines()
    assert first == f"Worker {error.worker}: ZeroDivisionError: nothing is left"
    assert second == "Examples at hand: 20/0"
    assert "\n".join(trace) == error.traceback


@pytest.mark.parametrize(
    "how, text",
    [
        ("exit", "ended, with exit code 3"),
        ("kill", r"was killed by SIGKILL \(too little memory\?\)"),
    ],
)
def test_process_workers_a_death_is_noticed_at_once(how, text):
    shared = SharedArrays({"counts": numpy.zeros(2, dtype="f")})
    share = toys.make_teacher(1000, 1, 1, False).share_of(1, 2)
    for _ in range(21):
        name = share.act()["id"]
        share.observe({"text": ""})
    settings = {"n_episodes": 1000, "wrong": {name: how}, "delay": 0.01, "training": False}
    workers = ProcessWorkers(toys.recipe(**settings), 2, shared)
    pids = [process.pid for process in workers._processes]
    began = time.monotonic()
    with HogwildWorld(workers, max_wait=60) as world:
        with pytest.raises(WorkerError, match=rf"^Worker 1: its process {pids[1]} {text}$"):
            toys.run_epoch(world)
        # Worker 1 has 20 episodes of at most 0.01 s before that one.
        assert time.monotonic() - began < 5
        # The other is well; what they share is still there.
        workers.ask(0, "echo", "here")
        assert shared.arrays["counts"][1] == 20
    assert not any(map(is_running, pids))


def test_process_workers_a_death_while_nothing_is_due_is_noticed():
    with HogwildWorld(ProcessWorkers(toys.recipe(), 2), max_wait=20) as world:
        os.kill(world.workers._processes[0].pid, signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(WorkerError, match="^Worker 0: its process .* was killed by SIGKILL"):
            world.report()
        assert time.monotonic() - began < 5


def test_process_workers_that_stand_still_are_given_up_and_killed():
    workers = ProcessWorkers(toys.recipe(n_episodes=1000), 2, stop_seconds=0.5)
    pids = [process.pid for process in workers._processes]
    os.kill(pids[0], signal.SIGSTOP)
    with HogwildWorld(workers, max_wait=0.5) as world:
        for _ in range(10):
            world.parley()
        began = time.monotonic()
        with pytest.raises(WorkerError, match="^Worker 0: no answer within 0.5 seconds"):
            world.drain()
        assert time.monotonic() - began < 5
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert not any(map(is_running, pids))


def test_process_workers_in_the_middle_of_a_long_call_are_killed():
    workers = ProcessWorkers(toys.recipe(), 2, stop_seconds=0.5)
    workers.ask(1, "fail", "hang")
    pids = [process.pid for process in workers._processes]
    n_threads = threading.active_count()
    began = time.monotonic()
    workers.stop()
    workers.stop()
    assert 0.4 < time.monotonic() - began < 5
    assert not any(map(is_running, pids))
    assert threading.active_count() == n_threads
    for call in (lambda: workers.ask(0, "echo", 1), lambda: workers.wait(0)):
        with pytest.raises(ProtocolError, match=r"after stop\(\)"):
            call()


def test_process_workers_a_call_that_nobody_takes_in(monkeypatch):
    monkeypatch.setattr(process_workers, "SEND_SECONDS", 0.5)
    workers = ProcessWorkers(toys.recipe(), 2, stop_seconds=0.2)
    os.kill(workers._processes[0].pid, signal.SIGSTOP)
    large = bytes(3_000_000)
    began = time.monotonic()
    with pytest.raises(WorkerError, match="^Worker 0: took in no call within 0.5 seconds"):
        workers.ask(0, "echo", large)
    # Nor does one that dies meanwhile hold anything up.
    workers.ask(1, "fail", "kill")
    with pytest.raises(WorkerError, match="^Worker 1: its process .* was killed by SIGKILL"):
        workers.ask(1, "echo", large)
    assert time.monotonic() - began < 5
    workers.stop()


@pytest.mark.parametrize(
    "how, text",
    [
        ("data", "days.txt:7  the sky is 'green', expected blue or grey$"),
        ("raise", "ZeroDivisionError: nothing is left\nTraceback"),
        ("kill", r"its process [0-9]+ was killed by SIGKILL \(too little memory\?\)$"),
    ],
)
def test_process_workers_that_cannot_be_made(how, text):
    began = time.monotonic()
    with pytest.raises(WorkerError, match=f"^Worker [01]: {text}"):
        ProcessWorkers(Recipe(toys.broken_worker, {"how": how}), 2)
    assert time.monotonic() - began < 30


def test_process_workers_that_take_too_long_to_be_made():
    with pytest.raises(WorkerError, match="^Worker 0: was not ready within 0.2 seconds$"):
        ProcessWorkers(Recipe(toys.broken_worker, {"how": "hang"}), 1, start_seconds=0.2)


def test_process_workers_that_the_system_does_not_start():
    ProcessWorkers(toys.recipe(), 1).stop()  # Starts what Python keeps.
    children = multiprocessing.active_children()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 12, hard))
    text = "its process could not be started: Too many open files. Set .hogwild. workers lower"
    try:
        with pytest.raises(WorkerError, match=f"^Worker [1-7]: {text}, or raise the limit"):
            ProcessWorkers(toys.recipe(), 8)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert multiprocessing.active_children() == children


@pytest.mark.slow
def test_process_workers_leave_no_open_files():
    gc.collect()
    ProcessWorkers(toys.recipe(), 1).stop()  # Starts what Python keeps.
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        shared = SharedArrays({"counts": numpy.zeros(2, dtype="f")})
        ProcessWorkers(toys.recipe(), 1, shared).stop()
        del shared
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
