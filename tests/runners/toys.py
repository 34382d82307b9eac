"""Workers for the tests of crews. They echo values, send messages, and fail in many ways."""

import os
import threading
import time
from types import SimpleNamespace
from typing import Any, Callable, List

from thincdialog.errors import DataError
from thincdialog.runners.crew import Crew
from thincdialog.runners.shared_arrays import open_arrays
from thincdialog.training.interruption import Interruption


def go_wrong(how: str) -> None:
    if how == "raise":
        raise ZeroDivisionError("nothing is left")
    if how == "data":
        raise DataError("days.txt", "the sky is 'green', expected blue or grey", 7)
    if how == "exit":
        os._exit(3)
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "leave":
        raise SystemExit(4)
    if how == "hang":
        time.sleep(1000)


class Toy:
    """A worker whose ``run`` sends the numbers below `most`, and fails at 7 as `wrong` says."""

    world = SimpleNamespace(at_hand=lambda: ["20/0"])

    def __init__(self, number: int, most: int = 20, wrong: str = "", delay: float = 0.0):
        self.number, self.most, self.wrong, self.delay = number, most, wrong, delay
        self.is_over = threading.Event()
        self.shared: Any = None

    def run(self, tell: Callable[[Any], None]) -> bool:
        for n in range(self.most):
            if n == 7:
                go_wrong(self.wrong)
            if self.is_over.is_set():
                return False
            time.sleep(self.delay)
            tell([n])
        return True

    def echo(self, value: Any) -> Any:
        return value

    def fail(self, how: str) -> None:
        go_wrong(how)

    def unspeakable(self) -> Any:
        return lambda: None

    def process(self) -> int:
        return os.getpid()


def make_toy(
    number: int, *, memory: Any = None, wrong_one: int = -1, wrong: str = "", **more: Any
) -> Toy:
    """Make one of several workers. It counts itself in an array that all of them share."""
    toy = Toy(number, wrong=wrong if wrong_one == number else "", **more)
    if memory is not None:
        toy.shared = open_arrays(memory)
        toy.shared["counts"][number] += 1
    return toy


def broken_toy(number: int, *, how: str) -> Toy:
    """Fail as `how` says instead of making a worker."""
    go_wrong(how)
    raise AssertionError("it was to go wrong")


def crew_of(workers: Any, **times: float) -> Crew:
    """Return a crew. Its attribute `notes` has the notes that it made."""
    notes: List[str] = []

    def stop() -> None:
        for worker in workers:
            if isinstance(worker, Toy):
                worker.is_over.set()

    crew = Crew(workers, stop, Interruption(), notes.append, **times)
    crew.notes = notes  # type: ignore[attr-defined]
    return crew


def run(crew: Crew, numbers: Any = None) -> List[Any]:
    """Call ``run`` of workers. Return the messages of each, followed by its result."""
    found: List[Any] = [[] for _ in crew.workers]
    for worker in range(len(crew.workers)) if numbers is None else numbers:
        crew.ask(worker, "run")
    while crew.busy:
        for told in crew.listen():
            found[told.worker] += [told.value] if told.is_answer else told.value
    return found
