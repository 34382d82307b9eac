"""A team of workers that Ray runs: starts and calls them, waits for them in bounded time, and
notices their deaths."""

import time
from contextlib import suppress
from typing import Any, Collection, Dict, Iterator, List, Mapping, Sequence

from ...errors import DialogError, WorkerError
from ...loader.failure import Failure
from ..patience import LOOK_SECONDS, Patience
from .actor import WorkerActor
from .ray_cluster import RayCluster

# How long workers may take to end by themselves.
LEAVE_SECONDS = 2.0
# How long to wait for workers to start, before a message says that they take long.
START_SECONDS = 30.0
# How often to ask workers for their progress, within the longest time to wait for them.
ASKS = 10


class Died(Exception):
    """Processes have died.

    workers (Sequence[int]): The numbers of the workers; empty if one died as it started.
    is_server (bool): Whether the server died instead of workers.
    """

    def __init__(self, workers: Sequence[int], text: str, is_server: bool = False):
        super().__init__(" ".join(text.split()))
        self.workers, self.is_server = list(workers), is_server

    @property
    def who(self) -> str:
        """The dead processes, for messages."""
        if self.is_server:
            return "the server"
        if not self.workers:
            return "a worker that was about to start"
        return f"worker {', '.join(map(str, self.workers))}"


class Team:
    """Holds an actor for each worker, and calls all of them at once.

    cluster (RayCluster): The cluster that runs the actors.
    patience (Patience): Limits the time to wait for them.
    n_workers (int): The largest number of workers.
    n_gpus (float): GPUs for each worker.
    """

    def __init__(self, cluster: RayCluster, patience: Patience, n_workers: int, n_gpus: float):
        self.cluster, self.ray, self.patience = cluster, cluster.ray, patience
        self.n_gpus = n_gpus
        # A worker may get a message from each other worker before its own ``join`` ends.
        self._at_once = n_workers + 8
        self.actors: List[Any] = []
        self.pids: List[int] = []
        # Starting actors, by the calls that make their workers.
        self._starting: Dict[Any, Any] = {}
        # Each worker's last progress; when workers were last asked for it, and when it last grew.
        self._progress: Dict[int, int] = {}
        self._asked = self._moved = 0.0
        # Called if a worker dies or fails, so that the others do not wait for it.
        self.abort: Any = lambda: None
        errors = self.ray.exceptions
        self._deaths = (
            errors.RayActorError, errors.NodeDiedError, errors.ObjectLostError,
            errors.OutOfMemoryError, errors.WorkerCrashedError,
        )  # fmt: skip

    # --- members ----------------------------------------------------------------------------

    def start(self, n_workers: int, recipe: Any) -> None:
        """Begin to start more workers, for ``join`` to add.

        recipe (ObjectRef): Reference to a ``Recipe``.
        """
        for _ in range(n_workers):
            actor = self.cluster.start(
                WorkerActor, n_cpus=1, n_gpus=self.n_gpus, at_once=self._at_once
            )
            self._starting[actor.call.remote("make", recipe)] = actor

    @property
    def n_starting(self) -> int:
        """The number of workers that are about to start."""
        return len(self._starting)

    def has_started(self) -> bool:
        """Return whether ``join`` would find a worker that has started."""
        refs = list(self._starting)
        return bool(refs and self.ray.wait(refs, num_returns=1, timeout=0)[0])

    def join(self, at_least: int = 0) -> int:
        """Add the workers that have started to the team.

        at_least (int): How many to wait for, if at least that many are about to start.
        RETURNS (int): How many were added.
        RAISES (Died): If a worker has died as it started.
        RAISES (DialogError): If a worker cannot start.
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
        """Remove dead workers from the team."""
        for number in sorted(numbers, reverse=True):
            self.kill(self.actors.pop(number))
            self.pids.pop(number)

    def kill(self, actor: Any) -> None:
        """End an actor, a worker's or a server's, even if it is dead already."""
        with suppress(Exception):
            self.ray.kill(actor, no_restart=True)

    def end(self) -> None:
        """End all workers. They have LEAVE_SECONDS to end by themselves, so that their calls can
        clean up; then they are killed."""
        with suppress(Exception):  # Ray may be gone.
            self.abort()
            left = [actor.__ray_terminate__.remote() for actor in self.actors]
            self.ray.wait(left, num_returns=len(left), timeout=LEAVE_SECONDS)
        for actor in (*self.actors, *self._starting.values()):
            self.kill(actor)
        self.actors, self._starting = [], {}

    # --- calls ------------------------------------------------------------------------------

    def each(self, call: str, *given: Any) -> List[Any]:
        """Call a method of every worker.

        given (Any): Each is for all workers, but a list has one item for each worker.
        RETURNS (List[Any]): The return value of each worker.
        RAISES (Died): If a worker is gone.
        RAISES (DialogError): If a call fails.
        """
        refs = {}
        for number, actor in enumerate(self.actors):
            own = [each[number] if isinstance(each, list) else each for each in given]
            refs[actor.call.remote(call, *own)] = number
        answers = self.wait(refs)
        return [answers[number] for number in range(len(self.actors))]

    def wait(self, refs: Mapping[Any, int]) -> Dict[int, Any]:
        """Wait for calls; RETURNS the results by the numbers of workers.

        refs (Mapping[ObjectRef, int]): The worker of each call.
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
        """Return calls as they end."""
        pending, heard = dict(refs), time.monotonic()
        while pending:
            for ref in self.look(pending, heard):
                heard = time.monotonic()
                del pending[ref]
                yield ref

    def look(
        self, refs: Mapping[Any, int], heard: float, seconds: float = LOOK_SECONDS
    ) -> List[Any]:
        """Return one of these calls that has ended, or none. All waiting for calls is done here,
        so its time is bounded.

        heard (float): Time of the last answer to one of these calls, or of the calls themselves.
        seconds (float): How long to wait.
        RAISES (WorkerError): If ``heard`` was too long ago, and workers make no progress.
        RAISES (Interrupted): If no call ends in time after a signal, or if signals may not wait.
        """
        # If a signal raised an error while Ray waits, Ray would replace it by an error without the
        # signal's number.
        with self.patience.interruption.shielding():
            done: List[Any] = self.ray.wait(list(refs), num_returns=1, timeout=seconds)[0]
            if not done:
                heard = max(heard, self._sign(refs.values(), heard))
                self.patience.check(set(refs.values()), heard)
        return done

    def _sign(self, numbers: Collection[int], heard: float) -> float:
        """Return the time of the last progress of these workers, because some calls take long."""
        now = time.monotonic()
        if now - max(heard, self._asked) < self.patience.max_wait / ASKS:
            return self._moved
        self._asked = now
        there = [number for number in numbers if number < len(self.actors)]
        if not there:
            return self._moved
        refs = {self.actors[number].call.remote("progress"): number for number in there}
        for ref in self.ray.wait(list(refs), num_returns=len(refs), timeout=LOOK_SECONDS)[0]:
            with suppress(Exception):  # A death is noticed by the worker's own call.
                told = self.ray.get(ref)
                if told != self._progress.get(refs[ref], 0):
                    self._progress[refs[ref]], self._moved = told, now
        return self._moved

    def answer(self, ref: Any, worker: int, is_server: bool = False) -> Any:
        """Return the result of a call that has ended.

        RAISES (Died): If the called process is gone.
        RAISES (DialogError): If the call failed.
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
