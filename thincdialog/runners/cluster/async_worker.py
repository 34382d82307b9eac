"""A worker of asynchronous training, which trains on units of work and keeps no state."""

from typing import Any, Callable, List, Mapping, Optional, Sequence

from ...agents.tally import not_finite
from ...errors import TrainingError
from ...models.gradient_sum import GradientSum
from ...ops.device_memory import held_bytes
from ...protocol import Learner, StepReport
from ...teachers import Teacher
from ...training.experiment import Experiment
from ..shared_arrays import Arrays
from .exchange import write_rows
from .gradient_server import LearnedUnit
from .host_vectors import HostVectors
from .joined_reports import joined_reports
from .walk import Walk


class AsyncWorker:
    """Train on one unit of work after the other, with weights from the server.

    experiment (Experiment): The worker's own copy of the experiment, or the run's experiment if
        this is the only worker.
    teacher (Teacher): Teacher of the training data.
    n_microbatches (int): Number of microbatches in a unit.
    at (Tuple[int, int]): Share of the data that the worker walks through, and number of shares.
    """

    def __init__(self, experiment: Experiment, teacher: Teacher, n_microbatches: int):
        self.experiment, self.n_microbatches = experiment, n_microbatches
        self.learner: Learner = experiment.learner
        self.vectors = HostVectors(experiment)
        self.segments = self.vectors.parameters.segments
        self.teacher = teacher
        self.origin: Mapping[str, Any] = {}
        self._walk(0, 1)

    def connect(self, number: int, arrays: Arrays, exchange: Callable[..., Any]) -> None:
        """Connect the worker to a server.

        number (int): Number of this worker, from 0.
        arrays (Arrays): Arrays with an ``async_layout``.
        exchange (Callable): See ``GradientServer.exchange``.
        """
        self.number, self.arrays, self.exchange = number, arrays, exchange
        self.vectors.use(arrays[f"values {number}"], arrays[f"vector {number}"])

    def go_to(self, origin: Mapping[str, Any]) -> None:
        """Train on units of the epoch that began at ``origin`` (``GradientServer.start_epoch``)
        from now on."""
        self.origin = origin

    def _walk(self, share: int, n_shares: int) -> None:
        """Begin to walk through one of n shares of the data."""
        teacher = self.teacher
        if n_shares > 1:
            teacher = teacher.share_of(share, n_shares, reads_apart=True)
        world = self.experiment.make_world(teacher, self.learner)
        self.walk = Walk(world, self.learner, self.experiment.seed)
        self.at = share, n_shares

    def _go_to_unit(self, unit: int) -> None:
        """Go to the first microbatch of a unit, or to the end of its share."""
        before = self.origin["before"]
        number, share = divmod(unit - self.origin["first"], len(before))
        if (share, len(before)) != self.at:
            self._walk(share, len(before))
        walk, epoch = self.walk, self.origin["epoch"]
        if walk.origin.get("epoch") != epoch:
            if before[share] is not None:
                walk.world.restore(before[share])
            while not walk.done():  # The world cannot be restored, so walk to the end.
                walk.skip()
            walk.start_epoch(epoch)
        walk.go_to({"origin": walk.origin, "n_before": number * self.n_microbatches})

    def work(self) -> None:
        """Train on units of work until the server has no more.

        RAISES (TrainingError): If a loss or a gradient is not finite.
        """
        with self.experiment.working():
            learned: Optional[LearnedUnit] = None
            while True:
                try:
                    given = self.exchange(self.number, learned, self.at)
                except TrainingError:
                    ids = [id for each in self._ids for id in each()]
                    raise not_finite("gradient", ids) from None
                if given is None:
                    return
                learned = self._learn(*given)

    def _learn(self, unit: int, version: int) -> LearnedUnit:
        """Train on the microbatches of a unit, and write their gradient to the shared arrays."""
        self.vectors.weights_changed()
        self._go_to_unit(unit)
        walk = self.walk
        if walk.done():
            return LearnedUnit(unit, version, None, state=walk.state())
        reports: List[StepReport] = []
        self._ids: List[Callable[[], Sequence[Optional[str]]]] = []
        total = GradientSum(self.vectors.ops, self.segments)
        for number in range(self.n_microbatches):
            if walk.done():
                break
            report, ids = walk.learn(unit + 1, number)
            reports.append(report)
            self._ids.append(ids)
            gradient, tables = self.vectors.take()
            if self.n_microbatches > 1:
                total.add(gradient, tables)
        if self.n_microbatches > 1:
            tables = total.take(self.vectors.gradients)
        write_rows(self.arrays, self.number, tables)
        held = held_bytes(self.learner.weights)
        return LearnedUnit(unit, version, joined_reports(reports), held)
