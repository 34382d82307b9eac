"""Several workers as one: each carries out calls in a thread of its own, and waiting for them
takes bounded time."""

import contextvars
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

from ..errors import WorkerError
from ..loader.failure import Failure
from ..training.interruption import Interruption
from .patience import LOOK_SECONDS, Patience

# What helps where the system gives no more threads or processes.
FEWER = "Set [runner] workers lower, or raise the limit (ulimit -a shows all)"


class WorkerMessage(NamedTuple):
    """What a worker says.

    worker (int): Its number, from 0.
    value (Any): What it tells on its way (see ``Crew``); else what its call gave, or a
        ``Failure``.
    is_answer (bool): Whether its call is over.
    """

    worker: int
    value: Any
    is_answer: bool = True


class Crew:
    """Workers that each carry out one call at a time.

    workers (Sequence[Any]): Objects with the methods that are called. ``run`` is called with a
        function to be called with what is to be told on the way; its ``world`` says which
        examples are at hand.
    stop (Callable[[], None]): Makes workers come back from ``run``.
    interruption (Interruption): Knows whether the run is to end, as after a signal.
    note (Callable[[str], None]): Told in a line what the user should know.
    times (float): See ``Patience``.
    """

    def __init__(
        self,
        workers: Sequence[Any],
        stop: Callable[[], None],
        interruption: Interruption,
        note: Callable[[str], None],
        **times: float,
    ):
        self.workers, self.stop, self.interruption = workers, stop, interruption
        self.patience = Patience(interruption, note, **times)
        # Workers whose answer is due.
        self.busy: List[int] = []
        self._told: "SimpleQueue[WorkerMessage]" = SimpleQueue()
        # Each thread waits for calls. A new thread for each call would delay the call of the next
        # worker, because starting a thread waits until it runs.
        self._threads: Dict[int, threading.Thread] = {}
        self._calls: List["SimpleQueue[Any]"] = [SimpleQueue() for _ in workers]
        self._heard = time.monotonic()  # When somebody said something, or was asked.

    def ask(self, worker: int, call: str, *arguments: Any) -> None:
        """Have a method of a worker called, which is not busy; ``listen`` tells what comes of
        it.

        RAISES (WorkerError): If the system gives no more threads.
        """
        if worker not in self._threads:
            thread = threading.Thread(
                target=self._serve,
                args=(worker,),
                name=f"worker {worker}",
                daemon=True,  # One that hangs keeps nobody from leaving.
            )
            try:
                thread.start()
            except RuntimeError as error:
                raise WorkerError(worker, f"{error}. {FEWER}") from None
            self._threads[worker] = thread
        # What is set for a context here, such as Thinc's ops, holds there, too.
        self._calls[worker].put((contextvars.copy_context(), call, arguments))
        self.busy.append(worker)
        self._heard = time.monotonic()

    def _serve(self, worker: int) -> None:
        while given := self._calls[worker].get():
            context, *call = given
            context.run(self._carry_out, worker, *call)

    def _carry_out(self, number: int, call: str, arguments: Sequence[Any]) -> None:
        worker, told = self.workers[number], self._told

        def tell(value: Any) -> None:
            told.put(WorkerMessage(number, value, False))

        try:
            if call == "run":
                value = worker.run(tell, *arguments)
            else:
                value = getattr(worker, call)(*arguments)
        except BaseException as error:  # Also SystemExit: nobody else hears it.
            value = Failure.of(error, worker.world if call == "run" else None)
        told.put(WorkerMessage(number, value))

    def listen(self, seconds: float = LOOK_SECONDS) -> List[WorkerMessage]:
        """What workers have said.

        seconds (float): How long to wait for it.
        RAISES (WorkerError): If one has failed, or nobody says anything in time.
        RAISES (Interrupted): If one hangs after a signal: nothing more can be saved.
        """
        told: List[WorkerMessage] = []
        with suppress(Empty):
            told.append(self._told.get(timeout=seconds))
            while True:
                told.append(self._told.get_nowait())
        for each in told:
            if isinstance(each.value, Failure):
                raise each.value.error(each.worker)
            if each.is_answer:
                self.busy.remove(each.worker)
        if told or not self.busy:
            self._heard = time.monotonic()
        else:
            self.patience.check(self.busy, self._heard)
        return told

    def each(self, call: str, *arguments: Any) -> List[Any]:
        """Call a method of every worker; nobody is busy.

        arguments (Any): For all of them; a list has one for each worker.
        RETURNS (List[Any]): What each gave.
        """
        answers: List[Any] = [None] * len(self.workers)
        for worker in range(len(self.workers)):
            own = [each[worker] if isinstance(each, list) else each for each in arguments]
            self.ask(worker, call, *own)
        while self.busy:
            for told in self.listen():
                answers[told.worker] = told.value
        return answers

    def end(self) -> None:
        """Let workers come back, in bounded time; those that do not are given up."""
        self.stop()
        for calls in self._calls:
            calls.put(None)
        until = time.monotonic() + (5.0 if self.interruption.received is None else 1.0)
        for thread in self._threads.values():
            thread.join(max(0.0, until - time.monotonic()))
