"""The runner that trains in a single process, one step after the other."""

from typing import Any, Callable, Dict, List, Mapping

from ..evaluation.evaluate_agent import evaluate_agent
from ..protocol import Learner, StepReport
from ..registry import registry
from ..teachers import Teacher
from ..training.experiment import Experiment
from ..training.interruption import Interruption
from ..training.runner import Runner
from ..worlds import World
from .step import one_step


@registry.runners("thincdialog.Alone.v1")
def build_alone() -> Runner:
    """Train in a single process, one step after the other. Runs are reproducible bit for bit."""
    return Alone()


class Alone(Runner):
    """Make all steps in this process, one after the other (see ``build_alone``).

    experiment (Experiment): The run's experiment, with the agent to train and its optimizer.
    learner (Learner): The experiment's agent.
    world (World): World of the training teacher and the ``learner``.
    """

    experiment: Experiment
    learner: Learner
    world: World

    def begin(
        self,
        experiment: Experiment,
        teacher: Teacher,
        interruption: Interruption,
        note: Callable[[str], None],
    ) -> None:
        self.experiment = experiment
        self.learner = experiment.learner
        self.world = experiment.make_world(teacher, experiment.agent)

    def end(self) -> None:
        self.world.shutdown()

    def start_epoch(self, epoch: int) -> None:
        self.world.start_epoch(epoch, self.experiment.seed)

    def epoch_done(self) -> bool:
        return self.world.epoch_done()

    def take(self, step: int, room: float) -> List[StepReport]:
        if self.world.epoch_done():
            return []
        experiment = self.experiment
        report = one_step(
            self.learner,
            self.world,
            experiment.optimizer,
            experiment.seed,
            step + 1,
            experiment.training["accumulate_gradient"],
        )
        return [report] if report.examples else []

    def evaluate(
        self, experiment: Experiment, teacher: Teacher, recorder: Any = None
    ) -> Dict[str, float]:
        make_world = experiment.evaluation["world"]
        return evaluate_agent(experiment.agent, teacher, make_world, recorder)

    def state(self) -> Dict[str, Any]:
        return self.world.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.world.restore(state)
