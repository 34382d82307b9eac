"""A worker's pass through all the data, in which it trains only on its own microbatches."""

from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ...errors import ProtocolError
from ...messages import MessageBatch
from ...protocol import Learner, StepReport
from ...worlds import World


class Walk:
    """Iterate over all microbatches of an epoch, in the same order in every worker. A worker skips
    the microbatches of other workers: it forms their batches, but computes nothing. Therefore all
    workers are at the same position in any kind of world, and the state of one worker's world
    serves for all.

    world (World): World with the whole training data and the learner.
    learner (Learner): The agent that trains on the microbatches that are not skipped.
    seed (int): Seed of the run.
    origin (Dict[str, Any]): Position of the beginning of the epoch, or the origin of the last
        position that ``go_to`` went to.
    n_before (int): Number of microbatches since ``origin``.
    """

    def __init__(self, world: World, learner: Learner, seed: int):
        self.world, self.learner, self.seed = world, learner, seed
        self.origin: Dict[str, Any] = {}
        self.n_before = 0

    def start_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        # A world may have state that outlives an epoch, such as a schedule of batch sizes.
        self.origin, self.n_before = {"epoch": epoch, "before": self.state()}, 0
        self.world.start_epoch(epoch, self.seed)

    def done(self) -> bool:
        """Return whether the epoch is over, or no epoch has begun."""
        return not self.origin or self.world.epoch_done()

    def learn(self, step: int, number: int) -> Tuple[StepReport, Callable[[], Any]]:
        """Train on the next microbatch, and leave its gradient in the learner.

        step (int): Number of the step or unit, from 1.
        number (int): Number of the microbatch in the step or unit, from 0.
        RETURNS (Tuple[StepReport, Callable]): See ``Learner.hand_over``.
        """
        self.learner.begin_microbatch(self.seed, step, number)
        self.world.parley()
        self.n_before += 1
        return self.learner.hand_over()

    def skip(self) -> None:
        """Skip the next microbatch: form the batch, but do not train on it."""
        # Set an attribute of the agent: it takes precedence over the method of the class, and
        # copies of the agent get it, too.
        self.learner.__dict__["learn"] = _learn_nothing
        try:
            self.world.parley()
        finally:
            del self.learner.__dict__["learn"]
        self.n_before += 1

    def state(self) -> Optional[Dict[str, Any]]:
        """Return the state of the world, or None if it cannot be saved."""
        try:
            return self.world.state()
        except ProtocolError:
            return None

    def place(self) -> Dict[str, Any]:
        """Return the position, for ``go_to``, as JSON values. If the world cannot save its state
        within an epoch, the position is the state at the epoch's beginning, and the number of
        microbatches since then."""
        state = self.state()
        if state is None:
            return {"origin": self.origin, "n_before": self.n_before}
        return {"origin": {"world": state}, "n_before": 0}

    def go_to(self, place: Mapping[str, Any]) -> None:
        """Go to a position.

        place (Mapping[str, Any]): A result of ``place`` of any worker.
        """
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
    """Return empty replies; replaces ``Learner.learn`` while a microbatch is skipped."""
    return MessageBatch({}, len(batch.rows))
