"""Workers that Ray runs: started, asked all at once, waited for in bounded time, and missed when
they die."""

import time
from contextlib import suppress
from typing import Any, Collection, Dict, Iterator, List, Mapping, Sequence

from ...errors import DialogError, WorkerError
from ...loader.failure import Failure
from ..patience import LOOK_SECONDS, Patience
from .actor import WorkerActor
from .ray_cluster import RayCluster

# How long workers may take to leave by themselves.
LEAVE_SECONDS = 2.0
# After which it is said that workers take long to start.
START_SECONDS = 30.0
# How often they are asked whether they get on, in the time for which one waits for them.
ASKS = 10


class Died(Exception):
    """Processes are gone.

    workers (Sequence[int]): The numbers of workers; none if one died as it started.
    is_server (bool): Whether it is a server, and no worker.
    """

    def __init__(self, workers: Sequence[int], text: str, is_server: bool = False):
        super().__init__(" ".join(text.split()))
        self.workers, self.is_server = list(workers), is_server

    @property
    def who(self) -> str:
        """To read."""
        if self.is_server:
            return "the server"
        if not self.workers:
            return "a worker that was about to start"
        return f"worker {', '.join(map(str, self.workers))}"


class Team:
    """Actors, one for each worker, which are asked all at once.

    cluster (RayCluster): Where they are.
    patience (Patience): How long they are waited for.
    n_workers (int): There will be at most.
    n_gpus (float): Of each.
    """

    def __init__(self, cluster: RayCluster, patience: Patience, n_workers: int, n_gpus: float):
        self.cluster, self.ray, self.patience = cluster, cluster.ray, patience
        self.n_gpus = n_gpus
        # All others may have a message before a worker has joined them.
        self._at_once = n_workers + 8
        self.actors: List[Any] = []
        self.pids: List[int] = []
        # By the calls that make them.
        self._starting: Dict[Any, Any] = {}
        # What each has told of what it was asked, when they were asked last, and when more came.
        self._progress: Dict[int, int] = {}
        self._asked = self._moved = 0.0
        # Called when one of them is gone, or fails, so that the others do not wait for it.
        self.abort: Any = lambda: None
        errors = self.ray.exceptions
        self._deaths = (
            errors.RayActorError, errors.NodeDiedError, errors.ObjectLostError,
            errors.OutOfMemoryError, errors.WorkerCrashedError,
        )  # fmt: skip

    # --- who is there -----------------------------------------------------------------------

    def start(self, n_workers: int, recipe: Any) -> None:
        """Begin to start workers, to stand beside those that are there.

        recipe (ObjectRef): Of a ``Recipe``.
        """
        for _ in range(n_workers):
            actor = self.cluster.start(
                WorkerActor, n_cpus=1, n_gpus=self.n_gpus, at_once=self._at_once
            )
            self._starting[actor.call.remote("make", recipe)] = actor

    @property
    def n_starting(self) -> int:
        """How many are about to start."""
        return len(self._starting)

    def has_started(self) -> bool:
        """Whether ``join`` finds somebody."""
        refs = list(self._starting)
        return bool(refs and self.ray.wait(refs, num_returns=1, timeout=0)[0])

    def join(self, at_least: int = 0) -> int:
        """Let those stand beside the others that have started.

        at_least (int): How many to wait for, if there are so many that start.
        RETURNS (int): How many.
        RAISES (Died): If one has died as it started.
        RAISES (DialogError): If one cannot begin.
        """
        n_before, heard = len(self.actors), time.monotonic()
        say_at = heard + START_SECONDS
        while self._starting and (len(self.actors) < n_before + at_least or self.has_started()):
            n = len(self.actors)
            numbers = {ref: n + place for place, ref in enumerate(self._starting)}
            if time.monotonic() > say_at:
                say_at = float("inf")
                text = (
                    f"{len(self._starting)} workers have not started yet: they read data, or wait"
                )
                self.patience.note(f"[runner] {text} for processors that another run has taken")
            for ref in self.look(numbers, heard):
                heard, actor = time.monotonic(), self._starting.pop(ref)
                try:
                    pid = self.answer(ref, numbers[ref])
                except BaseException as error:
                    self.kill(actor)
                    if isinstance(error, Died):
                        raise Died([], str(error)) from None
                    raise
                self.actors.append(actor)
                self.pids.append(pid)
        return len(self.actors) - n_before

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget those that are gone."""
        for number in sorted(numbers, reverse=True):
            self.kill(self.actors.pop(number))
            self.pids.pop(number)

    def kill(self, actor: Any) -> None:
        """Let one go, also a server, whatever has become of it."""
        with suppress(Exception):
            self.ray.kill(actor, no_restart=True)

    def end(self) -> None:
        """Let all of them go: by themselves, as what they have begun ends then and leaves nothing,
        or soon."""
        with suppress(Exception):  # Ray may be gone.
            self.abort()
            left = [actor.__ray_terminate__.remote() for actor in self.actors]
            self.ray.wait(left, num_returns=len(left), timeout=LEAVE_SECONDS)
        for actor in (*self.actors, *self._starting.values()):
            self.kill(actor)
        self.actors, self._starting = [], {}

    # --- what they are asked ----------------------------------------------------------------

    def each(self, call: str, *given: Any) -> List[Any]:
        """Call a method of every worker.

        given (Any): For all of them; a list has one for each worker.
        RETURNS (List[Any]): What each gave.
        RAISES (Died): If a process of theirs is gone.
        RAISES (DialogError): If one fails.
        """
        refs = {}
        for number, actor in enumerate(self.actors):
            own = [each[number] if isinstance(each, list) else each for each in given]
            refs[actor.call.remote(call, *own)] = number
        answers = self.wait(refs)
        return [answers[number] for number in range(len(self.actors))]

    def wait(self, refs: Mapping[Any, int]) -> Dict[int, Any]:
        """What calls give.

        refs (Mapping[ObjectRef, int]): The worker of each.
        """
        answers: Dict[int, Any] = {}
        died: Dict[int, str] = {}
        failed: List[DialogError] = []
        for ref in self.ended(refs):
            number = refs[ref]
            try:
                answers[number] = self.answer(ref, number)
            except Died as death:
                died[number] = str(death)
            except DialogError as error:
                failed.append(error)
            if died or failed:
                self.abort()
        if died:
            raise Died(sorted(died), died[min(died)])
        if failed:
            raise failed[0]
        return answers

    def ended(self, refs: Mapping[Any, int]) -> Iterator[Any]:
        """Calls as they end."""
        pending, heard = dict(refs), time.monotonic()
        while pending:
            for ref in self.look(pending, heard):
                heard = time.monotonic()
                del pending[ref]
                yield ref

    def look(
        self, refs: Mapping[Any, int], heard: float, seconds: float = LOOK_SECONDS
    ) -> List[Any]:
        """One of these calls that has ended, if one has. Whoever waits for calls waits here, in
        bounded time.

        heard (float): When something was heard of them last, or they were asked.
        seconds (float): How long to wait.
        RAISES (WorkerError): If that was too long ago.
        RAISES (Interrupted): If none ends in time after a signal, or it shall not wait.
        """
        # What a signal raises while Ray waits, Ray replaces by an error without its number.
        with self.patience.interruption.shielding():
            done: List[Any] = self.ray.wait(list(refs), num_returns=1, timeout=seconds)[0]
            if not done:
                heard = max(heard, self._sign(refs.values(), heard))
                self.patience.check(set(refs.values()), heard)
        return done

    def _sign(self, numbers: Collection[int], heard: float) -> float:
        """When it was seen last that one of them gets on, as some calls take long."""
        now = time.monotonic()
        if now - max(heard, self._asked) < self.patience.max_wait / ASKS:
            return self._moved
        self._asked = now
        there = [number for number in numbers if number < len(self.actors)]
        if not there:
            return self._moved
        refs = {self.actors[number].call.remote("progress"): number for number in there}
        for ref in self.ray.wait(list(refs), num_returns=len(refs), timeout=LOOK_SECONDS)[0]:
            with suppress(Exception):  # Who has died is found by what it was asked.
                told = self.ray.get(ref)
                if told != self._progress.get(refs[ref], 0):
                    self._progress[refs[ref]], self._moved = told, now
        return self._moved

    def answer(self, ref: Any, worker: int, is_server: bool = False) -> Any:
        """What a call that has ended gives.

        RAISES (Died): If who was asked is gone.
        RAISES (DialogError): If it fails.
        """
        try:
            answer = self.ray.get(ref)
        except self._deaths as error:
            raise Died([] if is_server else [worker], str(error), is_server) from None
        except self.ray.exceptions.RayError as error:
            raise WorkerError(worker, " ".join(str(error).split())) from None
        if isinstance(answer, Failure):
            raise answer.error(worker)
        return answer
