"""Several workers as one: each carries out a call in a thread of its own, and whoever waits
for them waits in bounded time."""

import contextvars
import threading
import time
import traceback
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from ..contract import place_in
from ..errors import DialogError, WorkerError
from ..training.interruption import Interrupted, Interruption

# How often one looks, while waiting, whether the run is to end.
LOOK_SECONDS = 0.5
# After which silent workers are taken for dead, and for which they are waited for at the end.
MAX_WAIT_SECONDS, MAX_END_SECONDS = 600.0, 25.0
# What helps where the system gives no more threads or processes.
FEWER = "Set [runner] workers lower, or raise the limit (ulimit -a shows all)"


class Failure(NamedTuple):
    """An error of a worker in words, so that it can come from another process.

    text (str): What it says.
    traceback (str): Where it came from; "" if a user can mend it.
    examples (Sequence[str]): Ids of those at hand.
    place (str): The line of a user's code that it came from, if it did.
    cause (Optional[BaseException]): Itself, in the same process.
    """

    text: str
    traceback: str = ""
    examples: Sequence[str] = ()
    place: str = ""
    cause: Optional[BaseException] = None

    @classmethod
    def of(cls, error: BaseException, world: Any = None) -> "Failure":
        """An error that was raised, in a world's parley or somewhere else."""
        if isinstance(error, DialogError):
            return cls(str(error), cause=error)
        try:
            examples: Sequence[str] = [] if world is None else world.at_hand()
        except Exception:  # What it has at hand may be what is broken.
            examples = []
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return cls(text, trace.rstrip("\n"), examples, place_in(error), error)

    def error(self, worker: int) -> WorkerError:
        """As it is raised where the worker is waited for."""
        error = WorkerError(
            worker,
            self.text,
            traceback=self.traceback,
            examples=self.examples,
            place=self.place,
        )
        error.__cause__ = self.cause
        return error


class Told(NamedTuple):
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
    max_wait (float): Seconds without a word of anybody, while one is due, that are taken for
        a failure.
    end_seconds (float): How long workers are waited for, all in all, once the run is to end:
        schedulers kill some 30 seconds after SIGTERM.
    """

    def __init__(
        self,
        workers: Sequence[Any],
        stop: Callable[[], None],
        interruption: Interruption,
        note: Callable[[str], None],
        *,
        max_wait: float = MAX_WAIT_SECONDS,
        end_seconds: float = MAX_END_SECONDS,
    ):
        self.workers, self.stop = workers, stop
        self.interruption, self.note = interruption, note
        self.max_wait, self.end_seconds = max_wait, end_seconds
        # Workers whose answer is due.
        self.busy: List[int] = []
        self._told: "SimpleQueue[Told]" = SimpleQueue()
        self._threads: List[threading.Thread] = []
        self._heard = time.monotonic()  # When somebody said something, or was asked.
        self._end = float("inf")  # Till when workers are waited for.

    def ask(self, worker: int, call: str, *arguments: Any) -> None:
        """Have a method of a worker called, which is not busy; ``listen`` tells what comes of
        it.

        RAISES (WorkerError): If the system gives no more threads.
        """
        # What is set for a context here, such as Thinc's ops, holds there, too.
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run,
            args=(self._carry_out, worker, call, arguments),
            name=f"worker {worker}",
            daemon=True,  # One that hangs keeps nobody from leaving.
        )
        try:
            thread.start()
        except RuntimeError as error:
            raise WorkerError(worker, f"{error}. {FEWER}") from None
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        self.busy.append(worker)
        self._heard = time.monotonic()

    def _carry_out(self, number: int, call: str, arguments: Sequence[Any]) -> None:
        worker, told = self.workers[number], self._told
        try:
            if call == "run":
                value = worker.run(lambda value: told.put(Told(number, value, False)))
            else:
                value = getattr(worker, call)(*arguments)
        except BaseException as error:  # Also SystemExit: nobody else hears it.
            value = Failure.of(error, worker.world if call == "run" else None)
        told.put(Told(number, value))

    def listen(self, seconds: float = LOOK_SECONDS) -> List[Told]:
        """What workers have said.

        seconds (float): How long to wait for it.
        RAISES (WorkerError): If one has failed, or nobody says anything in time.
        RAISES (Interrupted): If one hangs after a signal: nothing more can be saved.
        """
        told: List[Told] = []
        with suppress(Empty):
            told.append(self._told.get(timeout=seconds))
            while True:
                told.append(self._told.get_nowait())
        for each in told:
            if isinstance(each.value, Failure):
                raise each.value.error(each.worker)
            if each.is_answer:
                self.busy.remove(each.worker)
        now = time.monotonic()
        if told or not self.busy:
            self._heard = now
        elif self._end == float("inf") and self.interruption.received is not None:
            self._end = now + self.end_seconds
        elif now > min(self._end, self._heard + self.max_wait):
            self._give_up(is_ending=now > self._end)
        return told

    def _give_up(self, is_ending: bool) -> None:
        first, *others = sorted(self.busy)
        more = f" (nor from {', '.join(map(str, others))})" if others else ""
        when = f"within {self.max_wait:g} seconds"
        if is_ending:
            when = f"{self.end_seconds:g} seconds after the run was to end"
        error = WorkerError(first, f"no answer {when}{more}: it hangs, or is very slow")
        number = self.interruption.received
        if not is_ending or number is None:
            raise error
        self.note(f"{error}. Nothing more can be saved.")
        raise Interrupted(number)

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
        """Let workers come back, in bounded time; who does not is given up."""
        self.stop()
        until = time.monotonic() + (5.0 if self.interruption.received is None else 1.0)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
