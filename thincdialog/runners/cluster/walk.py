"""A worker's pass through the whole world, in which it trains only on its own microbatches."""

from typing import Any, Callable, Dict, Mapping, Tuple

from ...errors import ProtocolError
from ...messages import MessageBatch
from ...protocol import Learner, StepReport
from ...worlds import World


class Walk:
    """Every worker iterates over all microbatches of an epoch, in the same order as a single
    worker, and skips those of other workers: then it only forms the batch, and computes nothing.
    So all workers are at the same position in any world, and the state of one's world is the
    state of all.

    world (World): Has the whole training data and the learner.
    learner (Learner): Trains on the microbatches that the walk does not ``skip``.
    seed (int): The run's.
    origin (Dict[str, Any]): A position: the beginning of the epoch, or the target of ``go_to``.
    n_before (int): Number of microbatches since ``origin``.
    """

    def __init__(self, world: World, learner: Learner, seed: int):
        self.world, self.learner, self.seed = world, learner, seed
        self.origin: Dict[str, Any] = {}
        self.n_before = 0

    def start_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        try:
            # A world may have state that continues across epochs, such as a batch size schedule.
            before = self.world.state()
        except ProtocolError:
            before = None
        self.origin, self.n_before = {"epoch": epoch, "before": before}, 0
        self.world.start_epoch(epoch, self.seed)

    def done(self) -> bool:
        """Return whether the epoch is over, or none has begun."""
        return not self.origin or self.world.epoch_done()

    def learn(self, step: int, number: int) -> Tuple[StepReport, Callable[[], Any]]:
        """Train on the next microbatch, and leave its gradient in the learner.

        step (int): Number of the step or unit, from 1.
        number (int): Number of the microbatch in it, from 0.
        RETURNS (Tuple[StepReport, Callable]): See ``Learner.hand_over``.
        """
        self.learner.begin_microbatch(self.seed, step, number)
        self.world.parley()
        self.n_before += 1
        return self.learner.hand_over()

    def skip(self) -> None:
        """Skip the next microbatch."""
        # An attribute of the agent takes precedence over the class's method, and copies of the
        # agent get it, too.
        self.learner.__dict__["learn"] = _learn_nothing
        try:
            self.world.parley()
        finally:
            del self.learner.__dict__["learn"]
        self.n_before += 1

    def place(self) -> Dict[str, Any]:
        """Return the position, for ``go_to``, as JSON values. If the world cannot save its state
        within an epoch, this is the state at the epoch's beginning, and the microbatches since."""
        try:
            return {"origin": {"world": self.world.state()}, "n_before": 0}
        except ProtocolError:
            return {"origin": self.origin, "n_before": self.n_before}

    def go_to(self, place: Mapping[str, Any]) -> None:
        """Go to a position of any worker's walk."""
        origin = place["origin"]
        if origin != self.origin or place["n_before"] < self.n_before:
            if "world" in origin:
                self.world.restore(origin["world"])
            elif origin:
                if origin["before"] is not None:
                    self.world.restore(origin["before"])
                self.world.start_epoch(origin["epoch"], self.seed)
            self.origin, self.n_before = dict(origin), 0
        while self.n_before < place["n_before"] and not self.done():
            self.skip()


def _learn_nothing(batch: Any) -> MessageBatch:
    """Replace ``Learner.learn``; RETURNS empty replies."""
    return MessageBatch({}, len(batch.rows))
