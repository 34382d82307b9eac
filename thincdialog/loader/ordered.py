"""Tasks carried out by many hands, their results in the order of the tasks."""

from typing import Any, Callable, Dict, Iterator, Optional, Union

from .clocks import NO_TIME, Spent
from .failure import Failure
from .hands import Done, MakeWork, ProcessHands, ThreadHands

Hands = Union[ThreadHands, ProcessHands]
# Tasks under way, and results that wait for an earlier one, for each worker.
AHEAD = 4
# How long one waits for results before one looks whether all is well.
LOOK_SECONDS = 5.0


class OrderedMap:
    """Carries out tasks one after the other, here, until others help; whoever does it, results
    come in the order of the tasks, each once.

    tasks (Iterator): What is to be done, asked for as it is needed.
    make_work (MakeWork): Gives what carries out a task, each time a new one: tasks come to it in
        rising order.
    """

    def __init__(self, tasks: Iterator[Any], make_work: MakeWork):
        self._tasks, self._make_work = tasks, make_work
        self._work: Optional[Callable[[Any], Any]] = None
        self._hands: Optional[Hands] = None
        self._done: Dict[int, Done] = {}
        # Of the next task, and of the next result.
        self._given = self._taken = 0
        self._is_out_of_tasks = False
        # By the work of this process.
        self.spent = NO_TIME

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
            for done in hands.wait(LOOK_SECONDS if is_busy else 0.0):
                self._done[done.task] = done
            if is_busy or hands.n_ready > n_ready:
                return
        task = self._next_task()
        if task is None:
            raise StopIteration
        self._work = self._work or self._make_work()
        begin = Spent.now()
        self._done[self._given] = Done(self._given, self._work(task[0]), 0)
        self._given += 1
        self.spent = self.spent.plus(Spent.now().since(begin))

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
