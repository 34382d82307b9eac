"""Workers of the tests of hogwild: real worlds over lists of episodes, and what goes wrong."""

import os
import random
import signal
import time
from typing import Any, Dict, List, Optional, Sequence

import numpy
from thincdialog.parallel import Recipe

from thincdialog.batchers import Fixed, Padded
from thincdialog.errors import DataError
from thincdialog.messages import Message
from thincdialog.metrics import AverageMetric, Metric, SumMetric
from thincdialog.protocol import Agent
from thincdialog.teachers import Teacher, mix_tasks
from thincdialog.worlds import (
    BatchWorld,
    DynamicBatchWorld,
    HogwildWorld,
    PartnerWorld,
    World,
    WorldWorker,
)


class Noting(Agent):
    """Answers with the label, notes the ids that it has seen, and has a metric. Some ids
    make it fail.

    wrong (Dict[str, str]): Id to what happens there: see ``go_wrong``.
    """

    id = "noting"

    def __init__(self, wrong: Optional[Dict[str, str]] = None, delay: float = 0.0):
        self.wrong = wrong or {}
        self.delay = delay
        self.seen: List[str] = []
        self.totals: List[float] = []

    def act(self) -> Message:
        return self.batch_act([self.observation])[0]

    def batch_act(self, observations: Sequence[Message]) -> List[Message]:
        if self.delay:
            time.sleep(random.random() * self.delay)
        for message in observations:
            go_wrong(self.wrong.get(message["id"], ""))
            self.seen.append(message["id"])
            self.totals.append(0.1 * (1 + int(message["text"].split()[1])))
        return [Message(text=message.all_labels[0], agent=self.id) for message in observations]

    def report(self) -> Dict[str, Metric]:
        report: Dict[str, Metric] = {"seen": SumMetric(len(self.totals))}
        mean: Metric = AverageMetric()
        for total in self.totals:
            mean = mean + AverageMetric(total, 1)
        return {**report, "mean": mean}

    def reset_metrics(self) -> None:
        self.totals[:] = []


def go_wrong(how: str) -> None:
    if how == "raise":
        raise ZeroDivisionError("nothing is left")
    if how == "data":
        raise DataError("days.txt", "the sky is 'green', expected blue or grey", 7)
    if how == "exit":
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "leave":
        raise SystemExit(4)
    if how == "hang":
        time.sleep(1000)


def make_episodes(numbers: Sequence[int], n_turns: int) -> List[List[Message]]:
    return [
        [
            Message(
                id=f"{number}/{turn}", text=f"say {number} " + "so " * (number % 5), labels=["yes"]
            )
            for turn in range(n_turns)
        ]
        for number in numbers
    ]


def make_teacher(n_episodes: int, n_turns: int, n_tasks: int, training: bool) -> Teacher:
    """Tasks "a", "b", ... of so many episodes each; a single one as it is."""
    tasks = {}
    for task in range(n_tasks):
        numbers = range(task * n_episodes, (task + 1) * n_episodes)
        source = {"train": lambda numbers=numbers: make_episodes(numbers, n_turns)}
        tasks["abc"[task]] = Teacher(source).for_split("train", training=training)
    return mix_tasks(tasks)


def make_world(kind: str, teacher: Teacher, agent: Agent) -> World:
    if kind == "partner":
        return PartnerWorld(teacher, agent)
    if kind == "batch":
        return BatchWorld(teacher, agent, Fixed(4))
    return DynamicBatchWorld(teacher, agent, Padded(60, buffer=16))


class NotingWorker(WorldWorker):
    """Gives back the order and the ids of its parley.

    shared: An array that all workers count in, each in its own place.
    """

    def __init__(self, worker: int, agent: Noting, world: World, shared: Any = None):
        super().__init__(world)
        self.worker, self.agent, self.shared = worker, agent, shared

    def learn(self, order: Any) -> Any:
        n_before = len(self.agent.seen)
        super().learn(order)
        if self.shared is not None:
            self.shared[self.worker] += 1
        return order, self.worker, self.agent.seen[n_before:]

    def fail(self, how: str) -> None:
        go_wrong(how)

    def echo(self, value: Any) -> Any:
        return value

    def enlarge(self, value: bytes, n: int) -> bytes:
        return value * n

    def unspeakable(self) -> Any:
        return lambda: None

    def process(self) -> int:
        return os.getpid()

    def blas_threads(self) -> List[int]:
        from threadpoolctl import threadpool_info

        numpy.ones((300, 300)) @ numpy.ones((300, 300))
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def make_worker(
    worker: int,
    arrays: Dict[str, numpy.ndarray],
    *,
    n_workers: int = 2,
    kind: str = "partner",
    n_episodes: int = 10,
    n_turns: int = 1,
    n_tasks: int = 1,
    training: bool = True,
    wrong: Optional[Dict[str, str]] = None,
    delay: float = 0.0,
    teacher: Optional[Teacher] = None,
) -> NotingWorker:
    whole = teacher or make_teacher(n_episodes, n_turns, n_tasks, training)
    teacher = whole.share_of(worker, n_workers)
    agent = Noting(wrong, delay)
    return NotingWorker(worker, agent, make_world(kind, teacher, agent), arrays.get("counts"))


def broken_worker(worker: int, arrays: Any, *, how: str) -> NotingWorker:
    """Cannot be made."""
    go_wrong(how)
    raise AssertionError("it was to go wrong")


def recipe(**settings: Any) -> Recipe:
    return Recipe(make_worker, settings)


def all_ids(n_episodes: int, n_turns: int = 1, n_tasks: int = 1) -> List[str]:
    numbers = range(n_episodes * n_tasks)
    ids = (f"{number}/{turn}" for number in numbers for turn in range(n_turns))
    if n_tasks == 1:
        return sorted(ids)
    return sorted(f"{'abc'[int(id.split('/')[0]) // n_episodes]}/{id}" for id in ids)


def run_epoch(world: HogwildWorld) -> List[Any]:
    """Results of all parleys until the epoch is done."""
    results = []
    while not world.epoch_done():
        world.parley(len(results))
        results += world.finished()
    return results + world.finished()


def ids_of(results: List[Any]) -> List[str]:
    return sorted(id for _, _, ids in results for id in ids)
