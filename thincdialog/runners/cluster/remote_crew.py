"""The base class of workers in Ray's processes, which starts workers and replaces dead ones."""

import time
from contextlib import ExitStack
from typing import Any, Callable, Dict, List, Optional

from ...errors import WorkerError
from ...evaluation.predictions import Recorder
from ...teachers import Teacher
from ...training.experiment import Experiment
from ..data_prints import data_prints
from ..patience import Patience
from .evaluating import Share, evaluate_together
from .ray_cluster import FREE_SECONDS, RayCluster
from .recipe import recipe_of
from .team import Died, Team


class RemoteCrew:
    """Run workers that only evaluate, for ``evaluate`` and for agents that do not learn. This is
    also the base class of the workers of both modes.

    runner (RayRunner): The runner that uses the workers.
    teacher (Optional[Teacher]): Teacher of the training data; None if workers only evaluate.
    RAISES (DialogError): If the workers cannot start.
    """

    def __init__(self, runner: Any, teacher: Optional[Teacher]):
        self.runner, settings = runner, runner.settings
        self.experiment: Experiment = runner.experiment
        self.learner: Any = self.experiment.agent
        self.n_gpus: float = settings["num_gpus_per_worker"]
        # Checksums of the data to evaluate on, by split and task.
        self._data: Dict[str, Dict[str, str]] = {}
        names = ("address", "num_cpus", "object_store_memory", "plane")
        self.cluster = RayCluster(*(settings[name] for name in names))
        self.ray = self.cluster.ray
        patience = Patience(runner.interruption, runner.note)
        self.team = Team(self.cluster, patience, runner.num_workers, self.n_gpus)
        try:
            self.cluster.check_room(runner.num_workers, self.n_gpus)
            recipe = recipe_of(
                self.experiment, teacher, self.n_gpus > 0, temporary=self.cluster.folder
            )
            self.recipe = self.ray.put(recipe)
            self.team.start(runner.num_workers, self.recipe)
            self._begin()
        except Died as death:
            self.end()
            who = min(death.workers, default=0)
            raise WorkerError(who, f"{death.who} died while it was starting: {death}") from None
        except BaseException:
            with runner.interruption.waiting():
                self.end()
            raise

    def _begin(self) -> None:
        """Wait until all workers have started, and connect them."""
        self.team.join(self.runner.num_workers)

    def surely(self, attempt: Callable[[], Any]) -> Any:
        """Call a function, again after each death of a worker, and return its result."""
        while True:
            try:
                return attempt()
            except Died as death:
                self.recover(death)

    def recover(self, death: Died) -> None:
        """Replace dead workers, and workers that die meanwhile.

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
                    what = self._replace(death)
                except Died as another:
                    death = another
            seconds = time.monotonic() - began
            total = f"restarts so far: {runner.n_restarts}"
            runner.note(f"[runner] {what} ({seconds:.1f} seconds; {total})")

    def _replace(self, death: Died) -> str:
        """Continue without the dead workers, and return a description of the event for the log.

        RAISES (Died): If another worker dies meanwhile.
        """
        self.team.remove(death.workers)
        self._fill_up()
        return f"{death.who} died"

    def _fill_up(self) -> None:
        """Start workers to replace missing ones, as far as there is room."""
        team = self.team
        missing = self.runner.num_workers - len(team.actors) - team.n_starting
        if missing > 0:
            # The resources of dead workers may not be free yet.
            until = time.monotonic() + (0.0 if team.actors else FREE_SECONDS)
            fitting = self.cluster.fitting
            while not (n := fitting(missing, self.n_gpus)) and time.monotonic() < until:
                time.sleep(0.05)
            team.start(n, self.recipe)
        if not team.actors and not team.join(at_least=1):
            raise WorkerError(0, "it was the last worker, and it died; no other worker could start")

    def evaluate(self, teacher: Teacher, recorder: Optional[Recorder] = None) -> Dict[str, float]:
        """Evaluate the agent on the data of a teacher, with all workers.

        teacher, recorder: See ``evaluate_together``.
        RETURNS (Dict[str, float]): Metric name to value.
        """
        agent = self.learner
        split = next(iter(teacher.by_task().values())).split
        if split not in self._data:
            self._data[split] = data_prints(teacher)
        # The agent may currently have averages of the weights, instead of the newest weights that
        # workers have.
        shown = agent.weights.copy() if agent.learns else None
        names = ("temperature", "rejects_below") if agent.temperature is not None else ()
        chosen = {name: getattr(agent, name) for name in names}

        def attempt() -> List[Share]:
            numbers = list(range(len(self.team.actors)))
            given = (self._data[split], self._to_evaluate(shown), chosen, recorder)
            return self.team.each("evaluate", split, numbers, len(numbers), *given)

        return evaluate_together(self.experiment, teacher, recorder, self.surely(attempt))

    def _to_evaluate(self, weights: Any) -> Any:
        """Return the argument with which workers get these weights; None if they have them."""
        return None

    def _close(self) -> None:
        """Release resources that workers share."""

    def end(self) -> None:
        """End all workers."""
        with ExitStack() as stack:
            stack.callback(self.cluster.close)
            stack.callback(self._close)
            self.team.end()
