"""A world that a worker goes through whole, while it learns only its own microbatches."""

from typing import Any, Dict, Mapping

from ...errors import ProtocolError
from ...messages import MessageBatch
from ...protocol import Learner
from ...worlds import World


class Walk:
    """Every worker goes through all microbatches of an epoch, in the order that one worker has
    them in, and leaves those of others out: nothing is computed then but which examples they
    hold. So all know where all are, whatever the world and its batches, and the state of one
    is the state of all.

    world (World): Of the whole training data and the learner.
    learner (Learner): Learns where the walk does not ``skip``.
    seed (int): Of the run.
    origin (Dict[str, Any]): Where it was when an epoch began, or ``go_to`` went there.
    n_before (int): Microbatches behind it, since then.
    """

    def __init__(self, world: World, learner: Learner, seed: int):
        self.world, self.learner, self.seed = world, learner, seed
        self.origin: Dict[str, Any] = {}
        self.n_before = 0

    def start_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        try:
            # Schedules of batches go on from epoch to epoch.
            before = self.world.state()
        except ProtocolError:
            before = None
        self.origin, self.n_before = {"epoch": epoch, "before": before}, 0
        self.world.start_epoch(epoch, self.seed)

    def done(self) -> bool:
        """Whether the epoch is over, or none has begun."""
        return not self.origin or self.world.epoch_done()

    def learn(self) -> None:
        """Learn the next microbatch."""
        self.world.parley()
        self.n_before += 1

    def skip(self) -> None:
        """Leave the next microbatch out."""
        # Found before the class's own; copies share what an agent has.
        self.learner.__dict__["learn"] = _learn_nothing
        try:
            self.world.parley()
        finally:
            del self.learner.__dict__["learn"]
        self.n_before += 1

    def place(self) -> Dict[str, Any]:
        """Where it is, for ``go_to``, as JSON values. In a world that cannot tell it is where the
        epoch began, and how far it has come."""
        try:
            return {"origin": {"world": self.world.state()}, "n_before": 0}
        except ProtocolError:
            return {"origin": self.origin, "n_before": self.n_before}

    def go_to(self, place: Mapping[str, Any]) -> None:
        """Go on from a place, of any worker's walk."""
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
    """In the place of ``Learner.learn``; RETURNS replies that say nothing."""
    return MessageBatch({}, len(batch.rows))
