"""A worker of asynchronous training, which trains on units of work and keeps no state."""

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from thinc.util import is_numpy_array

from ...agents.tally import not_finite
from ...errors import TrainingError
from ...models.gradient_sum import GradientSum, dense_slices
from ...ops.alignment import aligned_zeros
from ...ops.device_memory import held_bytes
from ...protocol import Learner, StepReport
from ...teachers import Teacher
from ...training.experiment import Experiment
from .gradient import Gradient, to_host
from .gradient_server import LearnedUnit
from .joined_reports import joined_reports
from .walk import Walk

# Function that sends the result of a unit to the server, and returns the next unit and the version
# of the weights.
Exchange = Callable[[Optional[LearnedUnit]], Optional[Tuple[int, int]]]


class StatelessWorker:
    """Train on one unit of work after the other, with weights from the server.

    experiment (Experiment): The worker's own copy of the experiment, or the run's experiment if
        this is the only worker.
    teacher (Teacher): Teacher of the training data.
    n_microbatches (int): Number of microbatches in a unit.
    """

    def __init__(self, experiment: Experiment, teacher: Teacher, n_microbatches: int):
        self.experiment, self.n_microbatches = experiment, n_microbatches
        self.learner: Learner = experiment.learner
        self.parameters: Any = self.learner.parameters  # type: ignore[attr-defined]
        self.stretches = self.parameters.stretches
        world = experiment.make_world(teacher, self.learner)
        self.walk = Walk(world, self.learner, experiment.seed)
        self.first, self.origin = 0, dict(self.walk.origin)
        # Arrays of weights and gradients on the host, if the model is on a GPU.
        self._on_host: Optional[Tuple[Any, Any]] = None

    def use(self, values: Any, vector: Any = None) -> None:
        """Train with these weights from now on, and put gradients into this vector. A model on a
        GPU works with copies.

        values (Floats1d): All parameters, on the host.
        vector (Optional[Floats1d]): Vector of zeros, as long as ``values``; None to make one.
        """
        vector = aligned_zeros(len(values)) if vector is None else vector
        if is_numpy_array(self.learner.weights):
            self.learner.use_weights(values)
            self.parameters.move_gradients(vector)
        else:
            self._on_host = values, vector

    def start_epoch(self, epoch: int, first: int) -> Dict[str, Any]:
        """Begin an epoch.

        epoch (int): Number of the epoch, from 0.
        first (int): Number of its first unit.
        RETURNS (Dict[str, Any]): Position where the epoch begins, for ``go_to`` of other workers.
        """
        if self.walk.origin:
            # Go to the end of the last epoch, where all other workers are too.
            while not self.walk.done():
                self.walk.skip()
        self.walk.start_epoch(epoch)
        self.first, self.origin = first, self.walk.origin
        return self.origin

    def go_to(self, origin: Mapping[str, Any], first: int) -> None:
        """Go to the epoch that began at ``origin``, and whose first unit is ``first``."""
        self.walk.go_to({"origin": origin, "n_before": 0})
        self.first, self.origin = first, dict(origin)

    def work(self, exchange: Exchange) -> None:
        """Train on units of work until the server has no more.

        exchange (Exchange): Function that sends a result and returns the next unit.
        RAISES (TrainingError): If a loss or a gradient is not finite.
        """
        with self.experiment.working():
            learned: Optional[LearnedUnit] = None
            while True:
                try:
                    given = exchange(learned)
                except TrainingError:
                    ids = [id for each in self._ids for id in each()]
                    raise not_finite("gradient", ids) from None
                if given is None:
                    return
                learned = self._learn(*given)

    def _learn(self, unit: int, version: int) -> LearnedUnit:
        learner, walk = self.learner, self.walk
        if self._on_host is not None:
            learner.weights.set(self._on_host[0])
        learner.weights_changed()
        n_before = (unit - self.first) * self.n_microbatches
        walk.go_to({"origin": self.origin, "n_before": n_before})
        if walk.done():
            return LearnedUnit(unit, version, None, None)
        reports: List[StepReport] = []
        self._ids: List[Callable[[], Sequence[Optional[str]]]] = []
        total = GradientSum(self.parameters.ops, self.stretches)
        for number in range(self.n_microbatches):
            if walk.done():
                break
            report, ids = walk.learn(unit + 1, number)
            reports.append(report)
            self._ids.append(ids)
            if self.n_microbatches > 1:
                total.add(self.parameters.dense_gradients, self.parameters.take_rows())
        vector = self.parameters.dense_gradients
        if self.n_microbatches > 1:
            tables = total.take(vector)
        else:
            tables = self.parameters.take_rows()
        gradient = Gradient(vector, tables)
        if self._on_host is not None:
            dense = dense_slices(self.stretches)
            gradient = to_host(gradient, self._on_host[1], dense)
            for now in dense:
                vector[now].fill(0)
        held = held_bytes(learner.weights)
        return LearnedUnit(unit, version, joined_reports(reports), gradient, held)
