"""This process as the only one that makes steps as several would."""

from typing import Any, Dict, List

from ...optimizers.state import ARRAYS
from ...teachers import Teacher
from .lone_plane import LonePlane
from .peer import Peer
from .ray_runner import RayRunner
from .slots import Slots


class LonePeer:
    """This process as the only worker.

    runner (RayRunner): Whose it is.
    teacher (Teacher): Of the training data.
    """

    def __init__(self, runner: RayRunner, teacher: Teacher):
        self.runner, experiment = runner, runner.experiment
        self.peer = Peer(experiment, teacher)
        slots = Slots(runner.n_microbatches, 1)
        self.plane = LonePlane(experiment.learner.weights, self.peer.stretches, slots)
        for name in ARRAYS:
            if runner.kept(name) is not None:
                self.plane.state[name][:] = runner.kept(name)
        self.peer.join(self.plane, runner.optimizer_state())

    def do(self, call: str, *given: Any) -> List[Any]:
        """Call a method."""
        return [getattr(self.peer, call)(*given)]

    def made(self, step: int, kept: List[str]) -> None:
        """Steps were made."""
        self.runner.bind(self.plane.state, kept)

    def gather(self) -> None:
        """Nothing is elsewhere."""

    def place(self) -> Dict[str, Any]:
        """See ``Peer``."""
        return self.peer.place()

    def end(self) -> None:
        """Let go of it."""
        self.peer.walk.world.shutdown()
