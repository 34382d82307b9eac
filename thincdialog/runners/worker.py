"""One of several workers that learn the same weights."""

import time
import traceback
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from thinc.api import Optimizer

from ..errors import DialogError, ProtocolError, WorkerError
from ..optimizers.shared_state import StepSettings, for_a_worker
from ..optimizers.state import KEY
from ..protocol import Learner, StepReport
from ..teachers import Teacher
from ..training.experiment import Experiment
from ..training.step import one_step
from .stale_steps import stale_settings
from .step_numbers import StepNumbers

# How long a worker keeps what its steps report to itself: telling costs a short one more than
# a tenth of its time.
TELL_SECONDS = 0.05
Tell = Callable[[List[StepReport]], None]


class Worker:
    """Makes steps with a replica of the agent, in a world with a share of the data.

    experiment (Experiment): What all workers have in common; in another process, one of
        the same config.
    number, n_workers (int): Which worker it is, from 0, and of how many.
    optimizer (Optimizer): Whose arrays all workers change.
    settings (StepSettings): Of the optimizer at each step.
    numbers (StepNumbers): Where all workers draw from.
    at_once (int): Workers at steps at the same time.
    """

    def __init__(
        self,
        experiment: Experiment,
        teacher: Teacher,
        number: int,
        n_workers: int,
        optimizer: Optimizer,
        settings: StepSettings,
        numbers: StepNumbers,
        at_once: int,
    ):
        self.seed = experiment.seed
        self.n_microbatches: int = experiment.training["accumulate_gradient"]
        self.agent: Learner = experiment.learner.replica()
        self.optimizer, self.settings = for_a_worker(optimizer), settings
        self.numbers, self.at_once = numbers, at_once
        self.world = experiment.make_world(teacher.share_of(number, n_workers), self.agent)

    def start_epoch(self, epoch: int) -> bool:
        """Begin a pass over the share.

        RETURNS (bool): Whether it is done at once: an empty share.
        """
        self.world.start_epoch(epoch, self.seed)
        return self.world.epoch_done()

    def run(self, tell: Tell) -> bool:
        """Make steps until there are no more numbers, or nothing is left of the share.

        tell (Tell): Called now and then with what came of steps, and with the rest at last.
        RETURNS (bool): Whether the share is done.
        """
        reports: List[StepReport] = []
        told = time.monotonic()
        with self.numbers.turns:
            while not self.world.epoch_done():
                number = self.numbers.draw()
                if number is None:
                    break
                report = self._step(number)
                if report.examples:
                    reports.append(report)
                else:
                    self.numbers.give_back()
                if time.monotonic() - told > TELL_SECONDS:
                    tell(reports)
                    reports, told = [], time.monotonic()
        tell(reports)
        return self.world.epoch_done()

    def _step(self, number: int) -> StepReport:
        optimizer = self.optimizer
        optimizer.nr_update[KEY] = number - 1
        for name, value in stale_settings(self.settings.at(number), self.at_once).items():
            setattr(optimizer, name, value)
        return one_step(self.agent, self.world, optimizer, self.seed, number, self.n_microbatches)

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


class Failure(NamedTuple):
    """An error of a worker in words, so that it can go to another process.

    text (str): What it says.
    traceback (str): Where it came from; "" if a user can mend it.
    examples (Sequence[str]): Ids of those at hand.
    cause (Optional[BaseException]): Itself, in the same process.
    """

    text: str
    traceback: str
    examples: Sequence[str]
    cause: Optional[BaseException] = None

    @classmethod
    def of(cls, error: BaseException, world: Any = None) -> "Failure":
        """An error that was raised, in a world's parley or somewhere else."""
        if isinstance(error, DialogError):
            return cls(str(error), "", [], error)
        try:
            examples: Sequence[str] = [] if world is None else world.at_hand()
        except Exception:  # What it has at hand may be what is broken.
            examples = []
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return cls(text, trace.rstrip("\n"), examples, error)

    def error(self, worker: int) -> WorkerError:
        """As it is raised where the worker is waited for."""
        error = WorkerError(worker, self.text, traceback=self.traceback, examples=self.examples)
        error.__cause__ = self.cause
        return error
