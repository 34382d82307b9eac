"""The interface of runners, which make the steps of training."""

from numbers import Real
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy

from ..contract import Contract, Returned, holds, is_kind, is_mapping
from ..errors import Problem
from ..protocol import StepReport
from ..registry import registry
from ..teachers import Teacher
from .experiment import Experiment
from .interruption import Interruption, Note


def _are_reports(values: Any, *given: Any) -> bool:
    return isinstance(values, list) and all(isinstance(each, StepReport) for each in values)


class Runner(Contract):
    """Base of runners, which make training steps in one process or in several. Register a runner
    with ``registry.runners``, and choose it in ``[runner]``.

    The training loop counts, evaluates, saves and stops; it asks the runner for steps, and does
    not depend on the number of workers. Between ``settle`` and the next ``take``, no step is in
    progress, and the experiment's agent and optimizer reflect all completed steps.

    A subclass implements all methods without a default. If a custom runner only makes its steps in
    another way, derive it from ``runners.Alone`` and override ``take``.

    harmless (Sequence[str]): Settings of the runner that may change when a run resumes.
    n_workers (int): Number of workers that train at the same time, each with its own gradients and
        batch.
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
        """Return the problems of using this runner with the config; called before any data is
        read."""
        return []

    def begin(
        self, experiment: Experiment, teacher: Teacher, interruption: Interruption, note: Note
    ) -> None:
        """Prepare for training. The agent has its initial weights, or those of a checkpoint.

        experiment (Experiment): Holds the agent and the optimizer.
        teacher (Teacher): Teacher of the training data.
        interruption (Interruption): Knows whether the run must end soon.
        note (Note): Shows the user one line of text.
        RAISES (DialogError): If the runner cannot begin; ``end`` is then not called.
        """
        raise NotImplementedError

    def end(self) -> None:
        """Release the runner's resources. No steps follow."""

    def start_epoch(self, epoch: int) -> None:
        """Begin a pass over the training data, even if the last one is not finished."""
        raise NotImplementedError

    def epoch_done(self) -> bool:
        """Return whether all examples of the epoch were trained on, as far as is known."""
        raise NotImplementedError

    def take(self, step: int, room: float) -> List[StepReport]:
        """Make steps; none if the epoch is done.

        step (int): Number of steps so far.
        room (float): Number of steps that may be made before something else is due, 1 or more.
        RETURNS (List[StepReport]): Reports of the steps since the last call; may be empty.
        RAISES (TrainingError): If a loss or gradient is not finite.
        """
        raise NotImplementedError

    def settle(self) -> List[StepReport]:
        """Wait until no step is in progress.

        RETURNS (List[StepReport]): Reports of the steps since the last call.
        """
        return []

    def evaluate(
        self, experiment: Experiment, teacher: Teacher, recorder: Any = None
    ) -> Dict[str, float]:
        """Evaluate the experiment's agent in one pass over the data. This may be called during
        training, after training, or without ``begin``. Arguments are as for ``evaluate_agent``.

        RETURNS (Dict[str, float]): Metric name to value.
        """
        raise NotImplementedError

    def status(self) -> str:
        """Return the state of the workers for the progress line; "" if there is nothing to show.
        Called when the line is shown, also after ``end``."""
        return ""

    def gpu_bytes(self) -> Optional[int]:
        """Return the size of the largest GPU memory pool among workers in other processes; None
        if there is none. Called for each row of the log."""
        return None

    def state(self) -> Dict[str, Any]:
        """Return the position in the epoch, as JSON values.

        RAISES (ProtocolError): If it cannot be saved within an epoch.
        """
        raise NotImplementedError

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``state``.

        RAISES (ConfigError): If the state is from a runner with other settings.
        """
        raise NotImplementedError


registry.runners.makes(Runner)
