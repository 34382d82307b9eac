"""Several workers as one: what a runner asks of them, be they threads or processes."""

import time
from typing import Any, Callable, List, NamedTuple, Sequence

from ..errors import WorkerError
from .worker import Failure

# How often one looks, while waiting, whether the run is to end.
LOOK_SECONDS = 0.5
# What helps where the system gives no more threads or processes.
FEWER = "Set [runner] workers lower, or raise the limit (ulimit -a shows all)"


class Told(NamedTuple):
    """What a worker says.

    worker (int): Its number, from 0.
    value (Any): A list of ``StepReport`` while it makes steps; else what its call gave, or a
        ``Failure``.
    is_answer (bool): Whether its call is over.
    """

    worker: int
    value: Any
    is_answer: bool = True


class LateWorkerError(WorkerError):
    """A run was to end, and a worker has not come to the end of what it is at."""


class Crew:
    """Workers that each carry out one call at a time. A subclass gives ``ask``, ``hear`` and
    ``end``.

    n_workers (int): How many there are.
    is_ending (Callable[[], bool]): Whether the run is to end, as after a signal.
    max_wait (float): Seconds without a word of anybody, while one is due, that are taken for
        a failure.
    end_seconds (float): How long workers are waited for, all in all, once the run is to end.
    """

    def __init__(
        self,
        n_workers: int,
        is_ending: Callable[[], bool],
        *,
        max_wait: float = 600.0,
        end_seconds: float = 25.0,
    ):
        self.n_workers, self.is_ending = n_workers, is_ending
        self.max_wait, self.end_seconds = max_wait, end_seconds
        # Workers whose answer is due.
        self.busy: List[int] = []
        self.has_failed = False
        self._heard = time.monotonic()  # When somebody said something, or was asked.
        self._end = float("inf")  # Till when workers are waited for.

    def ask(self, worker: int, call: str, *arguments: Any) -> None:
        """Have a method of a ``Worker`` called; it is not busy.

        RAISES (WorkerError): If it has died.
        """
        raise NotImplementedError

    def hear(self, seconds: float) -> List[Told]:
        """What workers say; waits so long for it.

        RAISES (WorkerError): If one has died.
        """
        raise NotImplementedError

    def end(self) -> None:
        """End all workers, in bounded time; what they are at is given up."""
        raise NotImplementedError

    def run(self, workers: Sequence[int]) -> None:
        """Let workers make steps; ``listen`` tells what comes of it."""
        self._heard = time.monotonic()
        for worker in workers:
            self.busy.append(worker)
            self.ask(worker, "run")

    def listen(self, seconds: float = LOOK_SECONDS) -> List[Told]:
        """What workers have said.

        seconds (float): How long to wait for it.
        RAISES (WorkerError): If one has failed, or nobody says anything in time.
        """
        told = self.hear(seconds)
        now = time.monotonic()
        for each in told:
            if isinstance(each.value, Failure):
                self.has_failed = True
                raise each.value.error(each.worker)
            if each.is_answer:
                self.busy.remove(each.worker)
        if told or not self.busy:
            self._heard = now
        elif self._end == float("inf") and self.is_ending():
            self._end = now + self.end_seconds
        elif now > min(self._end, self._heard + self.max_wait):
            self.has_failed = True
            raise self._late()
        return told

    def _late(self) -> WorkerError:
        first, *others = sorted(self.busy)
        more = f" (nor from {', '.join(map(str, others))})" if others else ""
        tail = f"{more}: it hangs, or is very slow"
        if time.monotonic() < self._end:
            return WorkerError(first, f"no answer within {self.max_wait:g} seconds{tail}")
        text = f"no answer {self.end_seconds:g} seconds after the run was to end{tail}"
        return LateWorkerError(first, text)

    def each(self, call: str, *arguments: Any) -> List[Any]:
        """Call a method of every worker; nobody is busy.

        arguments (Any): For all of them; a list has one for each worker.
        RETURNS (List[Any]): What each gave.
        """
        self._heard = time.monotonic()
        answers: List[Any] = [None] * self.n_workers
        for worker in range(self.n_workers):
            self.busy.append(worker)
            own = [each[worker] if isinstance(each, list) else each for each in arguments]
            self.ask(worker, call, *own)
        while self.busy:
            for told in self.listen():
                answers[told.worker] = told.value
        return answers
