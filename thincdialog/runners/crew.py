"""A pool of workers, each of which executes calls in its own thread. Waiting for a worker has a
time limit."""

import contextvars
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

from ..errors import WorkerError
from ..loader.failure import Failure
from ..loader.worker_process import answer_of
from ..training.interruption import Interruption, Note
from .patience import LOOK_SECONDS, Patience

# Advice for the user if the system cannot start more threads or processes.
FEWER = "Lower [runner] workers, or raise the limit (ulimit -a shows all)"


class WorkerMessage(NamedTuple):
    """Hold a message from a worker.

    worker (int): Number of the worker, from 0.
    value (Any): An interim message of ``run`` (see ``Crew``), the return value of the call, or a
        ``Failure``.
    is_answer (bool): Whether the call has ended, so that ``value`` is its result.
    """

    worker: int
    value: Any
    is_answer: bool = True


class Crew:
    """Run workers in threads. Each worker executes one call at a time.

    workers (Sequence[Any]): Objects whose methods are called. The first argument of a worker's
        ``run`` is a function that sends an interim message; its ``world`` knows which examples it
        is working on, for error messages.
    stop (Callable[[], None]): Function that makes workers return from ``run``.
    interruption (Interruption): Says whether the run must end, for example after a signal.
    note (Note): Shows the user one line of text.
    **times (float): Time limits, passed to ``Patience``.
    """

    def __init__(
        self,
        workers: Sequence[Any],
        stop: Callable[[], None],
        interruption: Interruption,
        note: Note,
        **times: float,
    ):
        self.workers, self.stop, self.interruption = workers, stop, interruption
        self.patience = Patience(interruption, note, **times)
        # Numbers of the workers that are executing a call.
        self.busy: List[int] = []
        self._messages: "SimpleQueue[WorkerMessage]" = SimpleQueue()
        # Threads are kept between calls. Starting a thread for each call would delay the call of
        # the next worker, because ``Thread.start`` returns only when the thread is running.
        self._threads: Dict[int, threading.Thread] = {}
        self._calls: List["SimpleQueue[Any]"] = [SimpleQueue() for _ in workers]
        self._heard = time.monotonic()  # When the last call or message was sent.

    def ask(self, worker: int, call: str, *arguments: Any) -> None:
        """Start a call of a worker that is not busy; ``listen`` returns its messages.

        worker (int): Number of the worker.
        call (str): Name of the method.
        arguments (Any): Its arguments.
        RAISES (WorkerError): If the system cannot start another thread.
        """
        if worker not in self._threads:
            thread = threading.Thread(
                target=self._execute_calls,
                args=(worker,),
                name=f"worker {worker}",
                daemon=True,  # A thread that hangs must not prevent the program from ending.
            )
            try:
                thread.start()
            except RuntimeError as error:
                raise WorkerError(worker, f"{error}. {FEWER}") from None
            self._threads[worker] = thread
        # Give the worker's thread the same context variables, such as Thinc's current ops.
        self._calls[worker].put((contextvars.copy_context(), call, arguments))
        self.busy.append(worker)
        self._heard = time.monotonic()

    def _execute_calls(self, worker: int) -> None:
        while given := self._calls[worker].get():
            context, *call = given
            context.run(self._carry_out, worker, *call)

    def _carry_out(self, number: int, call: str, arguments: Sequence[Any]) -> None:
        worker, messages = self.workers[number], self._messages

        def tell(value: Any) -> None:
            messages.put(WorkerMessage(number, value, False))

        messages.put(WorkerMessage(number, answer_of(worker, call, arguments, tell)))

    def listen(self, seconds: float = LOOK_SECONDS) -> List[WorkerMessage]:
        """Return the messages that workers have sent since the last call.

        seconds (float): How long to wait for the first message.
        RAISES (WorkerError): If a worker has failed, or if no message arrives in time.
        RAISES (Interrupted): If a worker hangs after a signal, so that no more can be saved.
        """
        found: List[WorkerMessage] = []
        with suppress(Empty):
            found.append(self._messages.get(timeout=seconds))
            while True:
                found.append(self._messages.get_nowait())
        for each in found:
            if isinstance(each.value, Failure):
                raise each.value.error(each.worker)
            if each.is_answer:
                self.busy.remove(each.worker)
        if found or not self.busy:
            self._heard = time.monotonic()
        else:
            self.patience.check(self.busy, self._heard)
        return found

    def each(self, call: str, *arguments: Any) -> List[Any]:
        """Call a method of every worker, and wait for the results. No worker may be busy.

        call (str): Name of the method.
        arguments (Any): Its arguments. An argument that is a list holds one item for each worker;
            any other argument is passed to all workers.
        RETURNS (List[Any]): The return value of each worker.
        """
        answers: List[Any] = [None] * len(self.workers)
        for worker in range(len(self.workers)):
            own = [each[worker] if isinstance(each, list) else each for each in arguments]
            self.ask(worker, call, *own)
        while self.busy:
            for message in self.listen():
                answers[message.worker] = message.value
        return answers

    def end(self) -> None:
        """Stop the workers. Wait at most 5 seconds for them, or 1 second after a signal."""
        self.stop()
        for calls in self._calls:
            calls.put(None)
        until = time.monotonic() + (5.0 if self.interruption.received is None else 1.0)
        for thread in self._threads.values():
            thread.join(max(0.0, until - time.monotonic()))
