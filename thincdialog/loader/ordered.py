"""Tasks carried out by many hands, their results in the order of the tasks."""

import time
from contextvars import ContextVar
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Union

from .failure import Failure
from .hands import Done, MakeWork, ProcessHands, ThreadHands

Hands = Union[ThreadHands, ProcessHands]
# Tasks under way, and results that wait for an earlier one, for each worker.
AHEAD = 4
# How long one waits for results before one looks whether all is well.
LOOK_SECONDS = 5.0
# Whether who waits for results shall do nothing else: a thread beside one that makes steps.
waits_alone: ContextVar[bool] = ContextVar("waits_alone", default=False)


class _Raised(NamedTuple):
    """What was raised by the work of this process."""

    error: Exception


class OrderedMap:
    """Carries out tasks one after the other, here, until others help; whoever does it, results
    come in the order of the tasks, each once.

    tasks (Iterator): What is to be done, asked for as it is needed.
    make_work (MakeWork): Gives what carries out a task, each time a new one: tasks come to it in
        rising order.
    may_help (bool): Whether this process does tasks, too, where it would only wait.
    """

    def __init__(self, tasks: Iterator[Any], make_work: MakeWork, may_help: bool = True):
        self._tasks, self._make_work, self._may_help = tasks, make_work, may_help
        self._work: Optional[Callable[[Any], Any]] = None
        self._hands: Optional[Hands] = None
        self._done: Dict[int, Done] = {}
        # Of the next task, and of the next result.
        self._given = self._taken = 0
        self._is_out_of_tasks = False
        # That this process has worked.
        self.seconds = 0.0

    @property
    def has_hands(self) -> bool:
        """Whether others help."""
        return self._hands is not None

    def bring_in(self, hands: Hands) -> None:
        """Let others work from now on; this process does until the first is ready."""
        self._hands = hands

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self._taken not in self._done:
            self._go_on()
        done = self._done.pop(self._taken)
        self._taken += 1
        if isinstance(done.value, _Raised):
            raise done.value.error
        if isinstance(done.value, Failure):
            raise done.value.error(done.worker)
        return done.value

    def _go_on(self) -> None:
        hands = self._hands
        if hands is not None:
            n_ready = hands.n_ready
            while hands.has_room and self._given - self._taken < AHEAD * n_ready:
                task = self._next_task()
                if task is None:
                    break
                hands.give(self._given, task[0])
                self._given += 1
            is_busy = hands.is_busy
            # Who would only wait does something himself, unless steps are made meanwhile.
            has_room = self._given - self._taken < AHEAD * (n_ready + 1)
            helps = self._may_help and has_room and not waits_alone.get()
            works = not is_busy or (helps and not self._is_out_of_tasks)
            for done in hands.wait(0.0 if works else LOOK_SECONDS):
                self._done[done.task] = done
            if not works or self._taken in self._done or hands.n_ready > n_ready:
                return
        task = self._next_task()
        if task is not None:
            self._work_here(task[0])
        elif hands is None or not hands.is_busy:
            raise StopIteration

    def _work_here(self, task: Any) -> None:
        begin = time.perf_counter()
        try:
            self._work = self._work or self._make_work()
            made = self._work(task)
        except Exception as error:  # Others may be at what comes before.
            made = _Raised(error)
        self._done[self._given] = Done(self._given, made, 0)
        self._given += 1
        self.seconds += time.perf_counter() - begin

    def _next_task(self) -> Any:
        """The next task in a tuple; None if there is none."""
        if not self._is_out_of_tasks:
            for task in self._tasks:
                return (task,)
            self._is_out_of_tasks = True
        return None

    def close(self) -> None:
        """Let go of all hands."""
        if self._hands is not None:
            self._hands.end()
            self._hands = None
