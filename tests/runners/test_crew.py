"""A crew of workers answers or fails in bounded time, whatever the workers do."""

import contextvars
import signal
import threading
import time

import pytest

from tests.runners.toys import Toy, crew_of, run
from thincdialog.errors import DataError, WorkerError
from thincdialog.training.interruption import Interrupted


@pytest.fixture
def hanging():
    """Yield three workers, of which the second does not return."""
    release = threading.Event()

    class Hanging(Toy):
        def run(self, tell):
            if self.number == 1:
                release.wait(300)
            else:
                super().run(tell)

    yield [Hanging(number, most=10**6, delay=0.01) for number in range(3)]
    release.set()


def test_crew_returns_the_messages_and_the_result_of_each_worker():
    crew = crew_of([Toy(number, most=number) for number in range(4)])
    assert run(crew) == [[*range(number), True] for number in range(4)]
    assert crew.each("echo", [5, 6, 7, 8]) == [5, 6, 7, 8]
    assert crew.each("echo", "to all") == ["to all"] * 4
    assert run(crew, [3]) == [[], [], [], [0, 1, 2, True]]
    began = time.monotonic()
    assert crew.listen(0.1) == [] and 0.1 <= time.monotonic() - began < 60
    crew.end()


def test_crew_works_concurrently_in_the_context_of_the_caller():
    barrier = threading.Barrier(3, timeout=10)  # Each waits for the others.
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("here")  # Thinc keeps the current ops in such a variable.

    class Meeting(Toy):
        def meet(self):
            barrier.wait()
            return variable.get()

    assert crew_of([Meeting(number) for number in range(3)]).each("meet") == ["here"] * 3


@pytest.mark.parametrize(
    "how, text",
    [
        ("raise", "ZeroDivisionError: nothing is left"),
        ("interrupt", "KeyboardInterrupt"),
        ("leave", "SystemExit: 4"),
    ],
)
def test_crew_an_error_of_any_kind_names_worker_examples_and_place(how, text):
    crew = crew_of([Toy(0, most=10**6, delay=0.001), Toy(1, wrong=how)])
    began, n_threads = time.monotonic(), threading.active_count()
    with pytest.raises(WorkerError) as caught:
        run(crew)
    crew.end()  # The other worker returns.
    assert time.monotonic() - began < 60 and threading.active_count() <= n_threads
    error = caught.value
    first, *lines = str(error).splitlines()
    assert (error.worker, first) == (1, f"Worker 1: {text}")
    assert error.examples == ["20/0"] and lines[0] == "Examples in progress: 20/0"
    assert lines[1] == "Traceback (most recent call last):"
    assert "\n".join(lines[1:]) == error.traceback and "in go_wrong" in error.traceback
    assert type(error.__cause__).__name__ == text.partition(":")[0]


def test_crew_errors_in_data_stay_data_errors():
    crew = crew_of([Toy(0, most=10**6, delay=0.001), Toy(1, wrong="data")])
    with pytest.raises(DataError) as caught:
        run(crew)
    crew.end()
    text = "days.txt:7  the sky is 'green', expected blue or grey (read by worker 1)"
    assert str(caught.value) == text  # Errors that users can fix have no traceback.
    assert (caught.value.path, caught.value.line) == ("days.txt", 7)


def test_crew_an_error_in_at_hand_hides_no_other_error():
    crew = crew_of([Toy(0, wrong="raise")])
    crew.workers[0].world = None
    with pytest.raises(WorkerError, match="^Worker 0: ZeroDivisionError: nothing is left\nTrace"):
        run(crew)
    with pytest.raises(WorkerError, match="^Worker 0: AttributeError: 'Toy' object has no attri"):
        crew.each("nonsense")


def test_crew_waits_no_longer_than_max_wait(hanging):
    crew = crew_of(hanging, max_wait=0.3)
    crew.ask(1, "run")
    began = time.monotonic()
    with pytest.raises(WorkerError) as caught:
        while crew.busy:
            crew.listen(0.1)
    assert 0.3 <= time.monotonic() - began < 60
    text = "no answer within 0.3 seconds: it hangs, or is very slow"
    assert str(caught.value) == f"Worker 1: {text}"


@pytest.mark.slow
def test_crew_waits_end_seconds_for_all_workers_after_a_signal(hanging):
    crew = crew_of(hanging, end_seconds=1.0)
    # Other workers send messages all the time, so no worker is given up for being late.
    for worker in range(3):
        crew.ask(worker, "run")
    crew.interruption.received = signal.SIGTERM
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        crew.listen(0.1)
    crew.stop()
    began = time.monotonic()
    with pytest.raises(Interrupted) as caught:
        while crew.busy:
            crew.listen(0.1)
    assert 0.8 < time.monotonic() - began < 60
    assert caught.value.number == signal.SIGTERM
    text = "no answer 1 seconds after the run should have ended: it hangs, or is very slow"
    assert crew.notes == [f"Worker 1: {text}. Nothing more can be saved."]
    began = time.monotonic()
    crew.end()  # There is nothing to wait for.
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_crew_names_all_late_workers(hanging):
    crew = crew_of([Toy(0, wrong="hang"), hanging[1]], max_wait=0.2)
    with pytest.raises(WorkerError, match=r"^Worker 0: no answer .* seconds \(nor from 1\): it h"):
        run(crew)


def test_crew_that_cannot_start_threads_says_what_to_do():
    crew = crew_of([Toy(number, most=10**6, delay=0.001) for number in range(2)])
    crew.ask(0, "run")
    size = threading.stack_size()
    threading.stack_size(1 << 46)  # More memory than there can be.
    try:
        with pytest.raises(WorkerError, match=r"^Worker 1: .*thread.* Lower \[runner\] workers"):
            crew.ask(1, "run")
    finally:
        threading.stack_size(size)
    assert crew.busy == [0]
    crew.end()
