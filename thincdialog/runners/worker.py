"""One of several workers that learn the same weights."""

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
from .stale_steps import stale_settings
from .step import one_step
from .step_numbers import StepNumbers

# How long a worker keeps what its steps report to itself: telling costs a short one more than
# a tenth of its time.
TELL_SECONDS = 0.05
# Reports of steps, and in how many of these the optimizer was called (by some agents never).
StepMessage = Tuple[List[StepReport], int]
Tell = Callable[[StepMessage], None]


class ShareWorker:
    """A replica of an agent in a world of its own, with a share of the data.

    make_world (WorldFactory): Gives the world.
    share (Teacher): Its share of the data.
    agent (Agent): That all workers share.
    optimizer (Optional[Optimizer]): Changes the weights, which are shared (see
        ``for_a_worker``); None: the worker only answers.
    """

    def __init__(
        self,
        make_world: WorldFactory,
        share: Teacher,
        agent: Agent,
        optimizer: Any,
    ):
        self.agent: Any = agent.replica()
        self.world = make_world(share, self.agent)
        self.optimizer = optimizer
        self._libraries = ThreadpoolController()
        # Where they lie; agents of ours leave them there.
        is_watched = agent.learns and is_users(cast(Learner, agent).update)
        self._shared = address(cast(Learner, agent).weights) if is_watched else None

    def limit_threads(self) -> None:
        """Let products of matrices in this thread use one core. Some libraries (OpenMP, MKL,
        BLIS) keep a number of threads for each thread that calls them, so each ``run`` calls this;
        a search for the libraries takes 1 ms, so a worker makes it only once."""
        self._libraries.limit(limits=1, user_api="blas")

    def step(
        self, number: int, settings: Mapping[str, float], at_once: int, seed: int, n: int = 1
    ) -> StepReport:
        """Make a step.

        number (int): Of the step, from 1.
        settings (Mapping[str, float]): Of the optimizer, for one worker.
        at_once (int): Workers at steps at the same time.
        seed, n: As of ``one_step``.
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
    """Makes steps of a run.

    experiment (Experiment): What all workers have in common; in another process, one of
        the same config.
    share (Teacher): Its share of the training data.
    settings (Mapping[str, float]): Of the run's optimizer, as they are.
    numbers (StepNumbers): Where all workers draw from.
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
        """Begin a pass over the share."""
        self.world.start_epoch(epoch, self.experiment.seed)

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """Evaluations have changed schedules of the run's optimizer (``schedule_states``)."""
        self.settings.restore_schedules(states)

    def run(self, tell: Tell, epoch: Optional[int] = None) -> bool:
        """Make steps until there are no more numbers, or nothing is left of the share.

        tell (Tell): Called now and then with what came of steps, and with the rest at last.
        epoch (Optional[int]): The pass over the share to begin before; None: go on.
        RETURNS (bool): Whether the share is done.
        """
        reports: List[StepReport] = []
        n_calls, told = 0, time.monotonic()
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
                if time.monotonic() - told > TELL_SECONDS:
                    tell((reports, n_calls))
                    reports, n_calls, told = [], 0, time.monotonic()
        tell((reports, n_calls))
        return self.world.epoch_done()

    def state(self) -> Optional[Dict[str, Any]]:
        """Where the world is (see ``World.state``); None if this kind cannot tell."""
        try:
            return self.world.state()
        except ProtocolError:
            return None

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Go back to where ``state`` was taken.

        RETURNS (bool): Whether the share is done there.
        """
        self.world.restore(state)
        return self.world.epoch_done()
