"""Workers that are threads of this process."""

import contextvars
import sys
import threading
import time
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Callable, Iterator, List, Sequence

from threadpoolctl import threadpool_limits

from ..errors import WorkerError
from .crew import FEWER, Crew, Told
from .worker import Failure

# Seconds that a thread with the GIL may go on while others wait for it. With Python's 0.005,
# workers whose steps take 10 to 50 ms, most of it without the GIL, waited 3 to 10 % of the
# time; with this 2 to 7 %; with less, not less.
SWITCH_SECONDS = 0.001


@contextmanager
def side_by_side() -> Iterator[None]:
    """A stretch for threads that compute: BLAS uses one thread for each, and Python switches
    between them more often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        sys.setswitchinterval(before)


def start_thread(function: Callable[[], Any], worker: int) -> threading.Thread:
    """Call a function in a thread that nobody has to wait for.

    worker (int): Number of the worker.
    RAISES (WorkerError): If the system gives no more threads.
    """
    # What is set for a context here, such as Thinc's ops, holds there, too.
    context = contextvars.copy_context()

    def run() -> None:
        # Some libraries (OpenMP, MKL, BLIS) keep a number of threads for each thread, which a
        # new one does not inherit.
        threadpool_limits(1, user_api="blas")
        context.run(function)

    thread = threading.Thread(target=run, name=f"worker {worker}", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise WorkerError(worker, f"{error}. {FEWER}") from None
    return thread


class ThreadCrew(Crew):
    """Each call of a worker runs in a thread of its own.

    workers (Sequence[Worker]): Any objects with the methods that are called.
    stop (Callable[[], None]): Makes workers come back from ``run``.
    """

    def __init__(
        self,
        workers: Sequence[Any],
        stop: Callable[[], None],
        is_ending: Callable[[], bool] = lambda: False,
        **times: float,
    ):
        super().__init__(len(workers), is_ending, **times)
        self.workers, self.stop = workers, stop
        self._told: "SimpleQueue[Told]" = SimpleQueue()
        self._threads: List[threading.Thread] = []

    def ask(self, worker: int, call: str, *arguments: Any) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._threads.append(start_thread(lambda: self._carry_out(worker, call, arguments), worker))

    def _carry_out(self, number: int, call: str, arguments: Sequence[Any]) -> None:
        worker, told = self.workers[number], self._told
        try:
            if call == "run":
                value = worker.run(lambda reports: told.put(Told(number, reports, False)))
            else:
                value = getattr(worker, call)(*arguments)
        except BaseException as error:  # Also SystemExit: nobody else hears it.
            value = Failure.of(error, worker.world if call == "run" else None)
        told.put(Told(number, value))

    def hear(self, seconds: float) -> List[Told]:
        told: List[Told] = []
        try:
            told.append(self._told.get(timeout=seconds) if seconds > 0 else self._told.get_nowait())
            while True:
                told.append(self._told.get_nowait())
        except Empty:
            return told

    def end(self) -> None:
        """RAISES (WorkerError): If a thread does not come back: it may go on changing the
        weights."""
        self.stop()
        seconds = 1.0 if self.is_ending() else self.end_seconds
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        going = [thread for thread in self._threads if thread.is_alive()]
        if going and not self.has_failed and not self.is_ending():
            number = int(going[0].name.split()[-1])
            raise WorkerError(number, f"still at its call {seconds:g} seconds after the end")
