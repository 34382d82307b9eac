"""The only worker of a synchronous run, in this process."""

from typing import Any, Dict, List

from thinc.api import to_numpy

from ...teachers import Teacher
from .lone_plane import LonePlane
from .peer import Peer
from .ray_runner import RayRunner
from .slots import Slots


class LonePeer:
    """Make the steps of a synchronous run in this process, with the same result as several workers.

    runner (RayRunner): The runner that uses this object.
    teacher (Teacher): Teacher of the training data.
    """

    def __init__(self, runner: RayRunner, teacher: Teacher):
        self.runner, experiment = runner, runner.experiment
        self.peer = Peer(experiment, teacher)
        slots = Slots(runner.n_microbatches, 1)
        self.plane = LonePlane(experiment.learner.weights, self.peer.stretches, slots)
        for name, array in runner.arrays().items():
            self.plane.state[name][:] = to_numpy(array)
        self.peer.join(self.plane, runner.optimizer_state())

    def do(self, call: str, *given: Any) -> List[Any]:
        """Call a method of the worker, and return a list of its result."""
        return [getattr(self.peer, call)(*given)]

    def made(self, step: int, kept: List[str]) -> None:
        """Record that steps were made. ``kept`` names the arrays that the optimizer now has."""
        self.runner.bind(self.plane.state, kept)

    def gather(self) -> None:
        """Do nothing, because weights and state are in this process."""

    def place(self) -> Dict[str, Any]:
        """Return the position in the epoch (see ``Peer.place``)."""
        return self.peer.place()

    def end(self) -> None:
        """Shut down the world."""
        self.peer.walk.world.shutdown()
