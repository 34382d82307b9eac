"""Workers that are threads of this process."""

import contextvars
import threading
import time
from queue import Empty, SimpleQueue
from typing import Any, Callable, List, Optional, Tuple

from ..errors import ProtocolError, WorkerError
from ..worlds.world_worker import Answer, WorldWorker
from .blas_threads import limit_this_thread, one_blas_thread
from .calls import FEWER, Failure, carry_out
from .process_wide import frequent_switches

# How often one looks whether the threads are still there, while waiting.
LOOK_SECONDS = 1.0


class ThreadWorkers:
    """One thread for each worker (see ``worlds.Workers``). While they run, BLAS uses one
    thread for each, and Python switches between threads more often.

    make_worker (Callable[[int], WorldWorker]): Makes the worker of a number, from 0;
        called here, one after the other, before any thread runs.
    n_workers (int): How many, 1 or more.
    stop_seconds (float): How long ``stop`` waits for those that are in the middle of a call.
    """

    _is_stopped = True  # Until there is something to stop.

    def __init__(
        self,
        make_worker: Callable[[int], WorldWorker],
        n_workers: int,
        *,
        stop_seconds: float = 30.0,
    ):
        self.n_workers = n_workers
        self.stop_seconds = stop_seconds
        self._has_failed = False
        self._ends = threading.Event()
        self._answers: "SimpleQueue[Answer]" = SimpleQueue()
        self._calls: List["SimpleQueue[Tuple[str, Tuple[Any, ...]]]"] = []
        self._threads: List[threading.Thread] = []
        workers = [make_worker(number) for number in range(n_workers)]
        one_blas_thread.begin()
        frequent_switches.begin()
        self._is_stopped = False
        try:
            for number, worker in enumerate(workers):
                self._calls.append(SimpleQueue())
                # What is set for a context here, such as Thinc's ops, holds there, too.
                context = contextvars.copy_context()
                target = (_run, number, worker, self._calls[-1], self._answers, self._ends)
                thread = threading.Thread(
                    target=context.run, args=target, name=f"worker {number}", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError as error:
                    raise WorkerError(number, f"{error}. {FEWER}") from None
                self._threads.append(thread)
        except BaseException:
            self._has_failed = True
            self.stop()
            raise

    def ask(self, worker: int, call: str, *arguments: Any) -> None:
        """Have a method of a worker called, behind what it was asked before."""
        if self._is_stopped:
            raise ProtocolError("ThreadWorkers.ask() was called after stop().")
        self._calls[worker].put((call, arguments))

    def wait(self, seconds: float) -> Optional[Answer]:
        """The next answer of any worker; None if there was none for so long.

        RAISES (WorkerError): If a worker has raised an error.
        """
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            try:
                if left > 0:
                    answer = self._answers.get(timeout=min(left, LOOK_SECONDS))
                else:
                    answer = self._answers.get_nowait()
            except Empty:
                if left <= 0:
                    return None
                self._look()
                continue
            if isinstance(answer.value, Failure):
                self._has_failed = True
                raise answer.value.error(answer.worker)
            return answer

    def _look(self) -> None:
        for number, thread in enumerate(self._threads):
            if not thread.is_alive() and not self._is_stopped:
                self._has_failed = True
                raise WorkerError(number, "its thread has ended")

    def stop(self, seconds: Optional[float] = None) -> None:
        """End all threads, in bounded time; what they were asked and have not begun is
        left out.

        seconds (Optional[float]): In place of ``stop_seconds``.
        RAISES (WorkerError): If a thread does not end, and no worker has failed before: it
            may go on changing the weights.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        self._ends.set()
        for calls in self._calls:
            calls.put(("", ()))  # Wakes a thread that waits.
        seconds = self.stop_seconds if seconds is None else seconds
        until = time.monotonic() + seconds
        try:
            for thread in self._threads:
                thread.join(max(0.0, until - time.monotonic()))
        finally:
            frequent_switches.end()
            one_blas_thread.end()
        going = [number for number, thread in enumerate(self._threads) if thread.is_alive()]
        if going and not self._has_failed:
            text = f"still in the middle of a call {seconds:g} seconds after stop()"
            raise WorkerError(going[0], text)

    def __del__(self) -> None:
        self.stop()


def _run(
    number: int,
    worker: WorldWorker,
    calls: "SimpleQueue[Tuple[str, Tuple[Any, ...]]]",
    answers: "SimpleQueue[Answer]",
    ends: threading.Event,
) -> None:
    limit_this_thread()
    while True:
        call, arguments = calls.get()
        if ends.is_set():
            break
        answers.put(Answer(number, call, carry_out(worker, call, arguments)))
    carry_out(worker, "shutdown", ())
