"""A worker that trains the same weights as other workers."""

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, cast

from threadpoolctl import ThreadpoolController

from ..config import build_block
from ..contract import is_users
from ..errors import ProtocolError, TrainingError
from ..ops.alignment import address
from ..optimizers.shared_state import StepSettings, for_a_worker
from ..optimizers.state import KEY
from ..protocol import Agent, Learner, StepReport
from ..teachers import Teacher
from ..training.experiment import Experiment
from ..worlds import WorldFactory
from .alone import one_step
from .stale_steps import stale_settings
from .step_numbers import StepNumbers

# How long a worker collects the reports of its steps before sending them. Sending a report after
# each step would take more than a tenth of the time of a short step.
REPORT_SECONDS = 0.05
# Reports of steps, and the number of these steps that called the optimizer, as some agents do not.
StepMessage = Tuple[List[StepReport], int]
Tell = Callable[[StepMessage], None]


class ShareWorker:
    """Hold a world of one worker, with a replica of the agent and a share of the data.

    make_world (WorldFactory): Factory of the world.
    share (Teacher): The worker's share of the data.
    agent (Agent): The agent whose weights all workers share.
    optimizer (Optional[Optimizer]): Optimizer of the shared weights, from ``for_a_worker``; None if
        the worker only answers.
    """

    def __init__(self, make_world: WorldFactory, share: Teacher, agent: Agent, optimizer: Any):
        self.agent: Any = agent.replica()
        self.world = make_world(share, self.agent)
        self.optimizer = optimizer
        self._libraries = ThreadpoolController()
        # Address of the shared weights, to detect a custom ``update`` that replaces them.
        is_watched = agent.learns and is_users(cast(Learner, agent).update)
        self._shared = address(cast(Learner, agent).weights) if is_watched else None

    def limit_threads(self) -> None:
        """Limit matrix multiplications in this thread to one core. Each ``run`` calls this, because
        some libraries (OpenMP, MKL, BLIS) keep a separate limit for each calling thread. The
        libraries are searched for only once per worker, because that takes 1 ms."""
        self._libraries.limit(limits=1, user_api="blas")

    def step(
        self, number: int, settings: Mapping[str, float], at_once: int, seed: int, n: int = 1
    ) -> StepReport:
        """Make one step.

        number (int): Number of the step, from 1.
        settings (Mapping[str, float]): The optimizer's settings for a single worker.
        at_once (int): Number of workers that make steps at the same time.
        seed, n: See ``one_step``.
        RAISES (TrainingError): If a custom ``update`` replaced the shared array of weights; for
            other causes, see ``one_step``.
        """
        optimizer = self.optimizer
        optimizer.nr_update[KEY] = number - 1
        for name, value in stale_settings(settings, at_once).items():
            setattr(optimizer, name, value)
        report = one_step(self.agent, self.world, optimizer, seed, number, n)
        if self._shared is not None and address(self.agent.weights) != self._shared:
            text = f"{type(self.agent).__name__}.update replaced the array of weights"
            hint = "which workers share: change them in place (weights[:] = ...)"
            raise TrainingError(f"{text}, {hint}")
        return report


class Worker(ShareWorker):
    """Make steps of a training run.

    experiment (Experiment): The experiment that all workers of this process share; in another
        process, one made from the same config.
    share (Teacher): The worker's share of the training data.
    settings (Mapping[str, float]): Current settings of the run's optimizer.
    numbers (StepNumbers): The counter from which all workers draw.
    """

    def __init__(
        self,
        experiment: Experiment,
        share: Teacher,
        settings: Mapping[str, float],
        numbers: StepNumbers,
    ):
        self.experiment, self.numbers = experiment, numbers
        optimizer = for_a_worker(experiment.optimizer, experiment.ops)
        super().__init__(experiment.make_world, share, experiment.learner, optimizer)
        schedules = build_block(experiment.checked, "training.optimizer")
        self.settings = StepSettings(schedules, settings)

    def start_epoch(self, epoch: int) -> None:
        """Begin a pass over the worker's share."""
        with self.experiment.working():
            self.world.start_epoch(epoch, self.experiment.seed)

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """Take over the schedules of the run's optimizer (``schedule_states``), after evaluations
        have changed them."""
        self.settings.restore_schedules(states)

    def run(self, tell: Tell, epoch: Optional[int] = None) -> bool:
        """Make steps until ``numbers`` reaches its limit or the share is done.

        tell (Tell): Function that is called from time to time with the reports of new steps, and at
            the end with the remaining ones.
        epoch (Optional[int]): Epoch to begin first; None continues the current epoch.
        RETURNS (bool): Whether the share is done.
        """
        reports: List[StepReport] = []
        n_calls, last = 0, time.monotonic()
        seed, n = self.experiment.seed, self.experiment.training["accumulate_gradient"]
        self.limit_threads()
        if epoch is not None:
            self.start_epoch(epoch)
        with self.experiment.working(), self.numbers.turns:
            while not self.world.epoch_done():
                number = self.numbers.draw()
                if number is None:
                    break
                settings, at_once = self.settings.at(number), self.numbers.at_once
                report = self.step(number, settings, at_once, seed, n)
                if report.examples:
                    reports.append(report)
                    n_calls += self.optimizer.nr_update[KEY] == number
                else:
                    self.numbers.give_back()
                if time.monotonic() - last > REPORT_SECONDS:
                    tell((reports, n_calls))
                    reports, n_calls, last = [], 0, time.monotonic()
        tell((reports, n_calls))
        return self.world.epoch_done()

    def state(self) -> Optional[Dict[str, Any]]:
        """Return the state of the world (see ``World.state``), or None if it cannot be saved."""
        try:
            return self.world.state()
        except ProtocolError:
            return None

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Restore the state of the world.

        state (Mapping[str, Any]): A result of ``state``.
        RETURNS (bool): Whether the share is done.
        """
        with self.experiment.working():
            self.world.restore(state)
            return self.world.epoch_done()
