"""The runner contract: who makes the steps of training."""

from numbers import Real
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import numpy

from ..contract import Contract, Returned, holds, is_kind, is_mapping
from ..errors import Problem
from ..protocol import StepReport
from ..registry import registry
from ..teachers import Teacher
from .experiment import Experiment
from .interruption import Interruption


def _are_reports(values: Any, *given: Any) -> bool:
    return isinstance(values, list) and all(isinstance(each, StepReport) for each in values)


class Runner(Contract):
    """Makes steps, in one process or in many; register one with ``registry.runners``, and
    choose it in ``[runner]``.

    The training loop counts, evaluates, saves and stops; it asks the runner for steps and
    never knows how many hands it has. Between ``settle`` and the next ``take`` no step is
    under way, and the experiment's agent and optimizer are behind those that were made.

    A subclass gives all of this. One that only makes its steps in another way derives from
    ``runners.Alone`` and gives ``take``.

    harmless (Sequence[str]): Its settings that may change when a run goes on.
    n_workers (int): How many learn at once; each has gradients and a batch of its own.
    """

    returns = {
        **{name: Returned("a list of StepReports", _are_reports) for name in ("take", "settle")},
        "epoch_done": Returned("True or False", is_kind(bool, numpy.bool_)),
        "gpu_bytes": Returned("an int or None", is_kind(int, type(None))),
        "evaluate": Returned("numbers by the names of metrics", holds(Real)),
        "problems": Returned("a list of Problems", is_kind(list)),
        "state": Returned("a dict", is_mapping),
    }
    harmless: Sequence[str] = ()
    n_workers: int = 1

    def problems(self, experiment: Experiment) -> List[Problem]:
        """What in a config does not go with this runner; found before any data is read."""
        return []

    def begin(
        self,
        experiment: Experiment,
        teacher: Teacher,
        interruption: Interruption,
        note: Callable[[str], None],
    ) -> None:
        """Get ready, with an agent that has its first weights (or those to go on from).

        teacher (Teacher): Of the training data.
        interruption (Interruption): Knows whether the run is to end soon.
        note (Callable[[str], None]): Told in a line each what the user should know.
        RAISES (DialogError): If it cannot begin: then ``end`` is not called.
        """
        raise NotImplementedError

    def end(self) -> None:
        """Release what it holds; nothing more is asked of it."""

    def start_epoch(self, epoch: int) -> None:
        """Begin a pass over the training data, whatever is left of the last one."""
        raise NotImplementedError

    def epoch_done(self) -> bool:
        """Whether all examples of the epoch were learnt from, as far as is known."""
        raise NotImplementedError

    def take(self, step: int, room: float) -> List[StepReport]:
        """Make steps; none if the epoch is done.

        step (int): Steps made so far.
        room (float): How many more may be made before something else is due, 1 or more.
        RETURNS (List[StepReport]): Of the steps that were made since the last call; there
            may be none yet.
        RAISES (TrainingError): If a loss or gradient is not finite.
        """
        raise NotImplementedError

    def sign_of_life(self) -> Any:
        """An object that another one takes the place of whenever it gets on, even if no step
        comes of it; None: nobody can tell."""
        return None

    def settle(self) -> List[StepReport]:
        """Wait until no step is under way.

        RETURNS (List[StepReport]): Of those that were made since the last call.
        """
        return []

    def evaluate(
        self, experiment: Experiment, teacher: Teacher, recorder: Any = None
    ) -> Dict[str, float]:
        """Make one pass of the experiment's agent over data to evaluate on, during training,
        after it, or without ``begin`` (arguments as of ``evaluate_agent``).

        RETURNS (Dict[str, float]): Metric name to value.
        """
        raise NotImplementedError

    def status(self) -> str:
        """How workers get on, for the line that shows progress; "" if there is nothing to tell.
        Asked for when somebody looks, also after ``end``."""
        return ""

    def gpu_bytes(self) -> Optional[int]:
        """The most that a GPU holds for the memory pool of a worker that is not this process;
        None if there is none. Asked for each row of the log."""
        return None

    def state(self) -> Dict[str, Any]:
        """Where the epoch is, as JSON values.

        RAISES (ProtocolError): If it cannot be told within an epoch.
        """
        raise NotImplementedError

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to where ``state`` was taken.

        RAISES (ConfigError): If it is of a runner with other settings.
        """
        raise NotImplementedError


registry.runners.makes(Runner)
