"""The runner that trains in a single process, one step after the other. A step is one or more
parleys of a world, followed by an update of the weights."""

import math
from typing import Any, Dict, List, Mapping

from ..contract import is_users, place_of
from ..errors import TrainingError
from ..evaluation.evaluate_agent import evaluate_agent
from ..ops.later import Later
from ..protocol import Learner, StepReport
from ..registry import registry
from ..teachers import Teacher
from ..training.experiment import Experiment
from ..training.interruption import Interruption, Note
from ..training.runner import Runner
from ..worlds import World


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
        self, experiment: Experiment, teacher: Teacher, interruption: Interruption, note: Note
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
        make_world = experiment.make_evaluation_world
        return evaluate_agent(experiment.agent, teacher, make_world, recorder)

    def state(self) -> Dict[str, Any]:
        return self.world.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.world.restore(state)


def gather(agent: Learner, world: World, seed: int, step: int, n: int) -> None:
    """Accumulate an agent's gradient over the microbatches of one update.

    agent (Learner): The world's agent. Its random draws depend on the seed, the step and the number
        of the microbatch.
    world (World): World whose epoch is not done.
    seed (int): Seed of the run.
    step (int): Number of the update, from 1.
    n (int): Number of microbatches (parleys), 1 or more; fewer if the epoch ends before.
    """
    for number in range(n):
        if number and world.epoch_done():
            break
        agent.begin_microbatch(seed, step, number)
        world.parley()


def one_step(
    agent: Learner, world: World, optimizer: Any, seed: int, step: int, n: int
) -> StepReport:
    """Make one update of the weights, or none if no example had a label.

    agent, world, seed, step, n: See ``gather``.
    optimizer (Any): The optimizer of the update.
    RETURNS (StepReport): Report of the step.
    RAISES (TrainingError): If the loss or the gradient is not finite.
    """
    gather(agent, world, seed, step, n)
    learn_rate = getattr(optimizer, "learn_rate", None)
    report = agent.update(optimizer)
    loss, norm = report.loss, report.gradient_norm
    if loss is not None and not isinstance(loss, Later) and not math.isfinite(loss):
        own = type(agent).update
        where = f"{place_of(own)}: " if is_users(own) else ""
        text = f"{where}the loss of step {step} is {report.loss}: try a lower learn_rate"
        raise TrainingError(text)
    # A custom agent may return NumPy's numbers, which cannot be written as JSON.
    return report._replace(
        examples=int(report.examples),
        loss=loss if loss is None or isinstance(loss, Later) else float(loss),
        gradient_norm=norm if isinstance(norm, Later) else float(norm),
        learn_rate=None if learn_rate is None else float(learn_rate),
    )
