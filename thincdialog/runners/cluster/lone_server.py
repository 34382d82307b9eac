"""A gradient server and its only worker, in this process."""

from functools import partial
from typing import Any, Dict, List, Mapping, Tuple

from ...config import build_block
from ...teachers import Teacher
from .account import steps_of
from .gradient_server import GradientServer, UnitReport
from .pace import Pace
from .ray_runner import RayRunner
from .stateless_worker import StatelessWorker


class LoneServer:
    """Make the steps of an asynchronous run in this process, as the server and its only worker.

    runner (RayRunner): The runner that uses this object.
    teacher (Teacher): Teacher of the training data.
    bound (int): Maximum age of a gradient, in versions of the weights.
    first (Mapping[str, Any]): Snapshot that the server begins with.
    """

    busy: Tuple[int, ...] = ()

    def __init__(self, runner: RayRunner, teacher: Teacher, bound: int, first: Dict[str, Any]):
        self.runner, experiment = runner, runner.experiment
        self.worker = StatelessWorker(experiment, teacher, runner.n_microbatches)
        optimizer = build_block(experiment.checked, "training.optimizer")
        vectors = self.worker.vectors
        given = (self.worker.stretches, optimizer, vectors.ops, first["weights"])
        self.server = GradientServer(*given, bound)
        self.server.restore(first)
        vectors.use(self.server.values)
        self.pace = Pace()
        # Where the epoch began (``GradientServer.start_epoch``).
        self.origin: Dict[str, Any] = {}

    def start_epoch(self, epoch: int) -> None:
        """Begin an epoch (see ``GradientServer.start_epoch``)."""
        self.origin = self.server.start_epoch(epoch)
        self.worker.go_to(self.origin)

    def restore(self, origin: Mapping[str, Any], ledger: Mapping[str, Any]) -> None:
        """Resume the epoch that began at ``origin``, with the units of ``ledger``."""
        self.origin = dict(origin)
        self.server.restore_ledger(ledger)
        self.worker.go_to(self.origin)

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """Take over changed schedules (see ``GradientServer.restore_schedules``)."""
        self.server.restore_schedules(states)

    @property
    def is_over(self) -> bool:
        """Whether the epoch is over, or no epoch has begun."""
        return not self.origin or self.server.ledger.is_over

    def take(self, room: float) -> List[UnitReport]:
        """Make at most ``room`` steps, and return the reports of new units."""
        self.server.end_at(self.server.version + self.pace.begin(room))
        self.worker.work(partial(self.server.exchange, 0))
        made = self.server.take().made
        self.pace.end(len(steps_of(made)))
        return made

    def tell(self, steps: List[UnitReport]) -> None:
        """Give the run's optimizer the current state, after ``steps`` were made."""
        self.runner.bind(self.server.plane.state, self.server.owned.kept())
        self.worker.vectors.weights_changed()

    def settle(self) -> List[UnitReport]:
        """Return the remaining reports; no step is in progress between calls."""
        return self.server.take().made

    def state(self) -> Dict[str, Any]:
        """Return the position in the epoch, as the arguments of ``restore``."""
        return {"origin": self.origin, "ledger": self.server.ledger.state()}

    def end(self) -> None:
        """Shut down the world."""
        self.worker.walk.world.shutdown()
