"""One worker of a ``HogwildWorld``: a world of its own, and what it is asked to do."""

import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Protocol

from ..errors import ProtocolError
from ..metrics import Metric
from .world import World


class Answer(NamedTuple):
    """What a worker answered.

    worker (int): Number of the worker, from 0.
    call (str): The method of its ``WorldWorker`` that was called.
    value (Any): What it gave.
    """

    worker: int
    call: str
    value: Any


class Parleyed(NamedTuple):
    """What ``WorldWorker.parley`` gives.

    result (Any): What ``learn`` gave; None without a parley.
    has_parleyed (bool): False if the worker's epoch was done before.
    epoch_done (bool): Whether it is now.
    seconds (float): How long it took.
    """

    result: Any
    has_parleyed: bool
    epoch_done: bool
    seconds: float


class Workers(Protocol):
    """Several workers, each with a ``WorldWorker``; ``thincdialog.parallel`` has some.

    n_workers (int): How many there are.
    """

    n_workers: int

    def ask(self, worker: int, call: str, *arguments: Any) -> None:
        """Have a method of a worker's ``WorldWorker`` called, behind what it was asked
        before; it is answered in that order.

        RAISES (WorkerError): If the worker has died.
        """

    def wait(self, seconds: float) -> Optional[Answer]:
        """The next answer of any worker.

        seconds (float): How long to wait for one; 0 takes what is there.
        RETURNS (Optional[Answer]): None if there was none.
        RAISES (WorkerError): If a worker has raised an error, or has died.
        """

    def stop(self, seconds: Optional[float] = None) -> None:
        """End all workers, in bounded time, and restore what was changed for them.
        Calling it again does nothing.

        seconds (Optional[float]): How long those in the middle of a call may take for it;
            None: as long as is usual.
        """


class WorldWorker:
    """Takes part in a ``HogwildWorld`` with a world of its own. A subclass says in
    ``learn`` what a parley is for; any other method that it adds can be asked for, too.

    world (World): Shows this worker's share of the data to its copy of the agent.
    """

    def __init__(self, world: World):
        self.world = world

    def start_epoch(self, epoch: int, seed: int) -> bool:
        """Begin an epoch (see ``World.start_epoch``).

        RETURNS (bool): Whether it is done at once: an empty share.
        """
        self.world.start_epoch(epoch, seed)
        return self.world.epoch_done()

    def parley(self, order: Any = None) -> Parleyed:
        """One parley of the world, if there is something left.

        order (Any): From ``HogwildWorld.parley``, for ``learn``.
        """
        began = time.perf_counter()
        has_parleyed = not self.world.epoch_done()
        result = self.learn(order) if has_parleyed else None
        is_done = self.world.epoch_done()
        return Parleyed(result, has_parleyed, is_done, time.perf_counter() - began)

    def learn(self, order: Any) -> Any:
        """One parley, and what follows from it. Here: nothing.

        order (Any): What the parley is to be done with, such as a learning rate.
        RETURNS (Any): For ``HogwildWorld.finished``.
        """
        self.world.parley()
        return None

    def at_hand(self) -> List[str]:
        """Ids of the examples of the last parley, for error messages."""
        return self.world.at_hand()

    def report(self) -> Dict[str, Metric]:
        """Metrics since ``reset_metrics``."""
        return self.world.report()

    def reset_metrics(self) -> None:
        """Start the metrics afresh."""
        self.world.reset_metrics()

    def reset(self) -> bool:
        """Drop all conversations.

        RETURNS (bool): Whether the epoch is done with that.
        """
        self.world.reset()
        return self.world.epoch_done()

    def state(self) -> Optional[Dict[str, Any]]:
        """Where the world is (see ``World.state``); None if this kind cannot tell."""
        try:
            return self.world.state()
        except ProtocolError:
            return None

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Go back to where ``state`` was taken.

        RETURNS (bool): Whether the epoch is done there.
        """
        self.world.restore(state)
        return self.world.epoch_done()

    def shutdown(self) -> None:
        """Let go of the world's copies."""
        self.world.shutdown()
