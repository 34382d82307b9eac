"""A team of workers in Ray's processes, which starts and calls them, limits the time to wait for
them, and notices when they die."""

import time
from contextlib import suppress
from typing import Any, Collection, Dict, Iterator, List, Mapping, Sequence

from ...errors import DialogError, WorkerError
from ...loader.failure import Failure
from ..patience import LOOK_SECONDS, Patience
from .actor import WorkerActor
from .ray_cluster import RayCluster

# How long workers may take to end by themselves before they are killed.
LEAVE_SECONDS = 2.0
# How long to wait for workers to start before the user gets a message.
START_SECONDS = 30.0
# How often to ask workers for their progress within ``Patience.max_wait``.
ASKS = 10


class Died(Exception):
    """Raised if processes have died.

    workers (Sequence[int]): Numbers of the dead workers; empty if a worker died as it started.
    text (str): Description of the death, from Ray.
    is_server (bool): Whether the server died instead of workers.
    """

    def __init__(self, workers: Sequence[int], text: str, is_server: bool = False):
        super().__init__(" ".join(text.split()))
        self.workers, self.is_server = list(workers), is_server

    @property
    def who(self) -> str:
        """Name of the dead processes, for messages."""
        if self.is_server:
            return "the server"
        if not self.workers:
            return "a worker that was about to start"
        return f"worker {', '.join(map(str, self.workers))}"


class Team:
    """Hold an actor for each worker, and call all workers at once.

    cluster (RayCluster): The cluster that runs the actors.
    patience (Patience): Time limits for waiting.
    n_workers (int): Largest number of workers.
    n_gpus (float): GPUs for each worker.
    """

    def __init__(self, cluster: RayCluster, patience: Patience, n_workers: int, n_gpus: float):
        self.cluster, self.ray, self.patience = cluster, cluster.ray, patience
        self.n_gpus = n_gpus
        # A worker may get a message from each other worker before its own ``join_store`` ends.
        self._at_once = n_workers + 8
        self.actors: List[Any] = []
        self.pids: List[int] = []
        # Actors that are starting, by the calls of ``make``.
        self._starting: Dict[Any, Any] = {}
        # Last progress of each worker; when workers were last asked for it; when it last changed.
        self._progress: Dict[int, int] = {}
        self._asked = self._moved = 0.0
        # Function that is called if a worker dies or fails, so that the others do not wait for it.
        self.abort: Any = lambda: None
        errors = self.ray.exceptions
        self._deaths = (
            errors.RayActorError, errors.NodeDiedError, errors.ObjectLostError,
            errors.OutOfMemoryError, errors.WorkerCrashedError,
        )  # fmt: skip

    # --- members ----------------------------------------------------------------------------

    def start(self, n_workers: int, recipe: Any) -> None:
        """Begin to start more workers, which ``join`` adds to the team later.

        n_workers (int): Number of workers to start.
        recipe (ObjectRef): Reference to a ``Recipe``.
        """
        for _ in range(n_workers):
            actor = self.cluster.start(
                WorkerActor, n_cpus=1, n_gpus=self.n_gpus, at_once=self._at_once
            )
            self._starting[actor.call.remote("make", recipe)] = actor

    @property
    def n_starting(self) -> int:
        """Number of workers that are starting."""
        return len(self._starting)

    def has_started(self) -> bool:
        """Return whether a worker has started that ``join`` can add."""
        refs = list(self._starting)
        return bool(refs and self.ray.wait(refs, num_returns=1, timeout=0)[0])

    def join(self, at_least: int = 0) -> int:
        """Add the workers that have started to the team.

        at_least (int): Number of workers to wait for, as long as workers are starting.
        RETURNS (int): Number of workers that were added.
        RAISES (Died): If a worker died as it started.
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
                    f"{len(self._starting)} workers have not started yet: they are reading data, "
                )
                self.patience.note(f"[runner] {text}or waiting for processors of another run")
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
        """Remove dead workers, by their numbers, from the team."""
        for number in sorted(numbers, reverse=True):
            self.kill(self.actors.pop(number))
            self.pids.pop(number)

    def kill(self, actor: Any) -> None:
        """Kill the actor of a worker or a server; do nothing if it is dead already."""
        with suppress(Exception):
            self.ray.kill(actor, no_restart=True)

    def end(self) -> None:
        """End all workers. They get LEAVE_SECONDS to end by themselves, so that their calls can
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
        """Call a method of every worker, and wait for the results.

        call (str): Name of the method.
        given (Any): Its arguments. An argument that is a list holds one item for each worker; any
            other argument is passed to all workers.
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
        """Wait for calls, and return the results by the numbers of the workers.

        refs (Mapping[ObjectRef, int]): Calls, and the numbers of their workers.
        RAISES (Died): If a worker is gone.
        RAISES (DialogError): If a call fails.
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
        """Yield calls as they end.

        refs (Mapping[ObjectRef, int]): Calls, and the numbers of their workers.
        """
        pending, heard = dict(refs), time.monotonic()
        while pending:
            for ref in self.look(pending, heard):
                heard = time.monotonic()
                del pending[ref]
                yield ref

    def look(
        self, refs: Mapping[Any, int], heard: float, seconds: float = LOOK_SECONDS
    ) -> List[Any]:
        """Wait a while for one of these calls to end. This is the only place that waits for calls,
        so all waiting has a time limit.

        refs (Mapping[ObjectRef, int]): Calls, and the numbers of their workers.
        heard (float): Time of the last answer to one of these calls, or of the calls themselves.
        seconds (float): How long to wait.
        RETURNS (List[ObjectRef]): A call that has ended, or none.
        RAISES (WorkerError): If ``heard`` is too long ago, and workers make no progress.
        RAISES (Interrupted): If no call ends in time after a signal, or if signals may not wait.
        """
        # If a signal raised an error while Ray waits, Ray would replace this error by another one
        # without the number of the signal.
        with self.patience.interruption.shielding():
            done: List[Any] = self.ray.wait(list(refs), num_returns=1, timeout=seconds)[0]
            if not done:
                heard = max(heard, self._sign(refs.values(), heard))
                self.patience.check(set(refs.values()), heard)
        return done

    def _sign(self, numbers: Collection[int], heard: float) -> float:
        """Return when these workers last made progress, because a call may take long.

        numbers (Collection[int]): Numbers of the workers.
        heard (float): Time of the last answer.
        """
        now = time.monotonic()
        if now - max(heard, self._asked) < self.patience.max_wait / ASKS:
            return self._moved
        self._asked = now
        there = [number for number in numbers if number < len(self.actors)]
        if not there:
            return self._moved
        refs = {self.actors[number].call.remote("progress"): number for number in there}
        for ref in self.ray.wait(list(refs), num_returns=len(refs), timeout=LOOK_SECONDS)[0]:
            with suppress(Exception):  # The call that is waited for shows if the worker died.
                told = self.ray.get(ref)
                if told != self._progress.get(refs[ref], 0):
                    self._progress[refs[ref]], self._moved = told, now
        return self._moved

    def answer(self, ref: Any, worker: int, is_server: bool = False) -> Any:
        """Return the result of a call that has ended.

        ref (ObjectRef): The call.
        worker (int): Number of the called worker.
        is_server (bool): Whether the server was called instead of a worker.
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
