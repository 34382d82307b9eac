"""The workers of a run in Ray's processes: start them, call them all at once, limit the time to
wait for them, and replace them when they die."""

import time
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...errors import DialogError, WorkerError
from ...evaluation.evaluate_agent import evaluate_by
from ...evaluation.predictions import Recorder
from ...loader.failure import Failure
from ...metrics import Metric, merge_reports
from ...teachers import Teacher
from ..data_prints import data_prints
from ..patience import LOOK_SECONDS, Patience
from ..recipe import recipe_of
from .actor import Share, WorkerActor
from .ray_cluster import RayCluster

# How long to wait for workers to end before they are killed.
LEAVE_SECONDS = 2.0
# How long to wait for workers to start before the user gets a message.
START_SECONDS = 30.0
# How many times workers must show progress within the longest wait. The first time that they are
# asked counts as progress, so a wait may take this much longer.
PROGRESS_CHECKS = 10
# Calls that an actor executes at the same time: one that works, and questions about its progress.
N_CALLS = 4


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


class Workers:
    """Hold a Ray actor for each worker of a run.

    runner (RayRunner): The runner that uses the workers.
    teacher (Optional[Teacher]): Teacher of the training data; None if workers only evaluate.
    actors (List[ActorHandle]): The actors of the workers that can be called.
    pids (List[int]): Their process ids.
    abort (Callable[[], None]): Function that is called if a worker dies or fails, so that the
        others do not wait for it.
    RAISES (DialogError): If there is no room for the workers.
    """

    def __init__(self, runner: Any, teacher: Optional[Teacher]):
        self.runner, settings = runner, runner.settings
        self.patience = Patience(runner.interruption, runner.note)
        self.n_gpus: float = settings["num_gpus_per_worker"]
        self.actors: List[Any] = []
        self.pids: List[int] = []
        self.abort: Callable[[], None] = lambda: None
        # Actors that are starting, by the calls of ``make``.
        self._starting: Dict[Any, Any] = {}
        # Last progress of each worker, and when it last changed.
        self._progress: Dict[int, int] = {}
        self._moved = 0.0
        # Checksums of the data to evaluate on, by split and task.
        self._data: Dict[str, Dict[str, str]] = {}
        names = ("address", "num_cpus", "object_store_memory", "plane")
        self.cluster = RayCluster(*(settings[name] for name in names))
        self.ray = self.cluster.ray
        errors = self.ray.exceptions
        self._deaths = (
            errors.RayActorError, errors.NodeDiedError, errors.ObjectLostError,
            errors.OutOfMemoryError, errors.WorkerCrashedError,
        )  # fmt: skip
        with self.ending_on_error():
            self.cluster.check_room(runner.num_workers, self.n_gpus)
            has_gpus, folder = self.n_gpus > 0, self.cluster.folder
            self.recipe = recipe_of(runner.experiment, teacher, has_gpus, temporary=folder)
            self._sent = self.ray.put(self.recipe)
            self._start_missing()

    # --- members ----------------------------------------------------------------------------

    def _start_missing(self) -> None:
        """Begin to start missing workers, which ``join`` adds later. Ray starts them when there is
        room."""
        missing = self.runner.num_workers - len(self.actors) - len(self._starting)
        for _ in range(missing):
            actor = self.cluster.start(WorkerActor, n_cpus=1, n_gpus=self.n_gpus, at_once=N_CALLS)
            self._starting[actor.call.remote("make", self._sent)] = actor

    def has_started(self) -> bool:
        """Return whether a worker has started that ``join`` can add."""
        refs = list(self._starting)
        return bool(refs and self.ray.wait(refs, num_returns=1, timeout=0)[0])

    def join(self, at_least: int = 0) -> int:
        """Add the workers that have started.

        at_least (int): Number of workers to wait for.
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
                text = f"{len(self._starting)} workers have not started yet: they are reading data"
                self.patience.note(f"[runner] {text}, or waiting for processors of another run")
            for ref in self.look(numbers, heard):
                heard, actor = time.monotonic(), self._starting.pop(ref)
                try:
                    self.pids.append(self.answer(ref, numbers[ref]))
                except Died as death:
                    raise Died([], str(death)) from None
                self.actors.append(actor)
        return len(self.actors) - n_before

    def kill(self, actor: Any) -> None:
        """Kill the actor of a worker or a server; do nothing if it is dead already."""
        with suppress(Exception):
            self.ray.kill(actor, no_restart=True)

    @contextmanager
    def ending_on_error(self) -> Iterator[None]:
        """End all workers if the block raises an error."""
        try:
            yield
        except Died as death:
            self.end()
            who = min(death.workers, default=0)
            raise WorkerError(who, f"{death.who} died while it was starting: {death}") from None
        except BaseException:
            with self.runner.interruption.waiting():
                self.end()
            raise

    def end(self) -> None:
        """End all workers. They get LEAVE_SECONDS to end by themselves, so that their calls can
        clean up; then they are killed."""
        with ExitStack() as stack:
            stack.callback(self.cluster.close)
            with suppress(Exception):  # Ray may be gone.
                self.abort()
                left = [actor.__ray_terminate__.remote() for actor in self.actors]
                self.ray.wait(left, num_returns=len(left), timeout=LEAVE_SECONDS)
            for actor in (*self.actors, *self._starting.values()):
                self.kill(actor)
            self.actors, self._starting = [], {}

    # --- deaths -----------------------------------------------------------------------------

    def surely(self, attempt: Callable[[], Any]) -> Any:
        """Call a function, again after each death of a worker, and return its result."""
        while True:
            try:
                return attempt()
            except Died as death:
                self.recover(death)

    def recover(self, death: Died) -> None:
        """Remove dead workers, go back to the last snapshot with the others, and start new workers.

        RAISES (WorkerError): If more workers have died than ``max_restarts`` allows.
        """
        runner, began, what = self.runner, time.monotonic(), ""
        most = runner.settings["max_restarts"]
        # A signal must not save a run that is only partly recovered.
        with runner.interruption.shielding():
            while not what:
                runner.n_restarts += max(1, len(death.workers))
                if runner.n_restarts > most:
                    text = (
                        f"{death.who} died, and [runner] max_restarts = {most}: raise it, and "
                        f"continue with --resume. Ray says: {death}"
                    )
                    raise WorkerError(min(death.workers, default=0), text)
                try:
                    for number in sorted(death.workers, reverse=True):
                        self.kill(self.actors.pop(number))
                        del self.pids[number]
                    self._start_missing()
                    if not self.actors:
                        self.join(at_least=1)
                    is_training = runner.workers is self
                    what = runner.go_back(death) if is_training else f"{death.who} died"
                except Died as another:
                    death = another
            seconds = time.monotonic() - began
            total = f"restarts so far: {runner.n_restarts}"
            runner.note(f"[runner] {what} ({seconds:.1f} seconds; {total})")

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
        refs = []
        for number, actor in enumerate(self.actors):
            own = [each[number] if isinstance(each, list) else each for each in given]
            refs.append(actor.call.remote(call, *own))
        return self.wait(refs)

    def wait(self, refs: Sequence[Any]) -> List[Any]:
        """Wait for a call of each worker, and return the results.

        refs (Sequence[ObjectRef]): The calls, by the numbers of the workers.
        RAISES (Died): If a worker is gone.
        RAISES (DialogError): If a call fails.
        """
        pending = {ref: number for number, ref in enumerate(refs)}
        answers: Dict[int, Any] = {}
        deaths: List[Died] = []
        failures: List[DialogError] = []
        for ref, number in self.ended(pending):
            try:
                answers[number] = self.answer(ref, number)
            except Died as death:
                deaths.append(death)
            except DialogError as error:
                failures.append(error)
            if deaths or failures:
                self.abort()
        if deaths:
            # A call also fails if one of its arguments is the result of a worker that has died.
            raise Died(self._dead_workers() or deaths[0].workers, str(deaths[0]))
        if failures:
            raise failures[0]
        return [answers[number] for number in range(len(refs))]

    def ended(self, pending: Dict[Any, int]) -> Iterator[Tuple[Any, int]]:
        """Wait for calls, and yield each call that has ended, and the number of its worker.

        pending (Dict[ObjectRef, int]): The calls; those that have ended are removed.
        """
        heard = time.monotonic()
        while pending:
            for ref in self.look(pending, heard):
                heard = time.monotonic()
                yield ref, pending.pop(ref)

    def _dead_workers(self) -> List[int]:
        """Return the numbers of the workers that have died."""
        refs = [actor.call.remote("node") for actor in self.actors]
        self.ray.wait(refs, num_returns=len(refs), timeout=START_SECONDS)
        dead = []
        for number, ref in enumerate(refs):
            try:
                self.ray.get(ref, timeout=0)
            except self._deaths:
                dead.append(number)
            except self.ray.exceptions.GetTimeoutError:
                pass  # It may still be reachable.
        return dead

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
                due = max(heard, self._moved) + self.patience.max_wait / PROGRESS_CHECKS
                is_late = time.monotonic() > due
                if is_late and self._have_progressed(refs):
                    self._moved = time.monotonic()
                self.patience.check(set(refs.values()), max(heard, self._moved))
        return done

    def _have_progressed(self, refs: Mapping[Any, int]) -> bool:
        """Return whether called workers have made progress since they were last asked."""
        there = {number for number in refs.values() if number < len(self.actors)}
        asked = {self.actors[number].call.remote("progress"): number for number in there}
        progress = dict(self._progress)
        for ref in self.ray.wait(list(asked), num_returns=len(asked), timeout=LOOK_SECONDS)[0]:
            with suppress(Exception):  # The call that is waited for shows if the worker died.
                progress[asked[ref]] = self.ray.get(ref)
        before, self._progress = self._progress, progress
        return progress != before

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

    # --- evaluation -------------------------------------------------------------------------

    def evaluate(self, teacher: Teacher, recorder: Optional[Recorder] = None) -> Dict[str, float]:
        """Evaluate the run's agent on the data of a teacher, with all workers, each of which
        evaluates a share of the examples. The scores are the same as those of a single process.

        teacher (Teacher): Teacher of the whole split.
        recorder (Optional[Recorder]): Records every reply.
        RETURNS (Dict[str, float]): Metric name to value.
        """
        agent = self.runner.experiment.agent
        split = next(iter(teacher.by_task().values())).split
        if split not in self._data:
            self._data[split] = data_prints(teacher)
        # The agent may currently have averages of the weights, instead of the newest weights that
        # workers have.
        weights = agent.weights.copy() if agent.learns else None
        names = ("temperature", "rejects_below") if agent.temperature is not None else ()
        chosen = {name: getattr(agent, name) for name in names}

        def attempt() -> List[Share]:
            if weights is not None:  # Workers may have been replaced since the last attempt.
                agent.weights[:] = weights
                agent.weights_changed()
            numbers = list(range(len(self.actors)))
            given = (self._data[split], self.ray.put(weights), chosen, recorder)
            return self.each("evaluate", split, numbers, len(numbers), *given)

        found: List[Share] = self.surely(attempt)
        for _, recorded in found:
            if recorder is not None and recorded is not None:
                recorder.join(recorded)

        def measure(name: str, task: Teacher) -> Dict[str, Metric]:
            report = merge_reports(*(reports[name] for reports, _ in found))
            if recorder is not None:
                recorder.arrange(name, (str(each["id"]) for each in task.examples()))
            return report

        return evaluate_by(measure, agent, teacher)
