"""A world that runs conversations in several threads, which share the data and the weights."""

from collections import deque
from functools import cached_property, partial
from queue import Empty, SimpleQueue
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Set, cast

from thinc.api import get_current_ops

from ..errors import ProtocolError
from ..loader.cores import n_cores
from ..metrics import Metric, merge_reports
from ..optimizers.shared_state import for_a_worker, lay_out_state, settings_of, why_not_shared
from ..optimizers.state import KEY
from ..protocol import Agent, Learner
from ..registry import registry
from ..teachers import Teacher
from ..training.experiment import Experiment
from ..training.interruption import Interruption
from ..worlds import PartnerWorld, World, WorldFactory
from .crew import Crew
from .worker import ShareWorker

# Maximum number of parleys per worker that are released and not yet shown. It is large enough that
# no worker waits for the thread that releases parleys. (With 2, evaluations took a fifth longer.)
AHEAD = 16


@registry.worlds("thincdialog.HogwildWorld.v1")
def build_hogwild_world(
    n_workers: int = 2, conversation: Optional[WorldFactory] = None
) -> WorldFactory:
    """Evaluate with several threads, each of which answers a share of the data. (To train with
    several workers, set ``[runner]``.)

    n_workers (int): Number of threads, 1 or more.
    conversation (Optional[WorldFactory]): World of each thread, such as
        "thincdialog.BatchWorld.v1"; null: "thincdialog.PartnerWorld.v1".
    """
    make_world = conversation or PartnerWorld
    return partial(HogwildWorld, n_workers=n_workers, make_world=make_world)


def with_threads(
    experiment: Experiment, n_workers: int, interruption: Optional[Interruption]
) -> WorldFactory:
    """Return a factory of worlds that evaluate with several threads and give the same scores as one
    thread. If threads could change the scores or are of no use, return the config's own factory:
    for an agent on a GPU, an agent whose replies depend on the batches, and a custom agent that
    overrides ``report`` but not ``replica``.

    n_workers (int): Number of threads.
    interruption (Optional[Interruption]): Says whether the run must end.
    """
    agent, make_world = experiment.agent, experiment.make_evaluation_world
    counts_alone = type(agent).replica is Agent.replica and type(agent).report != Agent.report
    is_on_cpu = experiment.ops.device_type == "cpu"
    if n_workers == 1 or agent.replies_need_batch or counts_alone or not is_on_cpu:
        return make_world
    how = {"make_world": make_world, "interruption": interruption}
    return partial(HogwildWorld, n_workers=n_workers, **how)


class HogwildWorld(World):
    """Share a teacher's data among worker threads, each with its own world and a replica of the
    agent. (ParlAI has a world of this name.)

    ``parley`` lets one worker make a parley in its world, and does not wait for the result unless
    too many parleys are in progress or the workers have taken all data. ``acts`` holds the acts of
    a parley that has ended, and is empty if none has. ``shutdown`` joins the threads.

        with HogwildWorld(train, agent, 2, optimizer) as world:
            while not world.epoch_done():
                world.parley()
            print(world.report())

    teacher (Teacher): The agent whose messages come from data.
    agent (Agent): The agent that answers the messages, on the CPU.
    n_workers (int): Number of threads, 1 or more.
    optimizer (Optional[Optimizer]): Required for training: each worker updates the shared weights
        after each of its parleys, so do not call ``agent.update``.
    make_world (WorldFactory): Factory of the workers' worlds.
    interruption (Optional[Interruption]): Says whether the run must end.
    RAISES (ProtocolError): If the agent is trained without an optimizer, or with one whose state
        workers cannot share; or if the agent is evaluated and its replies depend on the batches.
    """

    def __init__(
        self,
        teacher: Teacher,
        agent: Agent,
        n_workers: int,
        optimizer: Any = None,
        make_world: WorldFactory = PartnerWorld,
        interruption: Optional[Interruption] = None,
    ):
        if n_workers < 1:
            raise ProtocolError(f"HogwildWorld has n_workers = {n_workers}: give 1 or more.")
        super().__init__([teacher, agent])
        self.agent: Any = agent
        self.optimizer: Any = optimizer if agent.learns and teacher.training else None
        if agent.replies_need_batch and not teacher.training:
            raise ProtocolError(
                f"HogwildWorld cannot evaluate {agent.id}: its replies depend on the batches."
            )
        twins: List[Any] = [None] * n_workers
        if agent.learns and teacher.training:
            _check_optimizer(optimizer)
            lay_out_state(optimizer, KEY, cast(Learner, agent).weights)
            twins = [for_a_worker(optimizer, get_current_ops()) for _ in twins]
        self._workers = [
            _ReleasedWorker(make_world, share, agent, twin)
            for share, twin in zip(teacher.shares(n_workers), twins)
        ]
        # A crew calls ``note`` only if a signal ends the run, so nothing is shown here.
        ending = interruption or Interruption()
        self._crew = Crew(self._workers, self._stop_runs, ending, lambda line: None)
        self._at_once = min(n_workers, n_cores())
        self._n_released = self._seed = 0
        self._begin()

    def _begin(self) -> None:
        """Reset this world to the state at the beginning of an epoch."""
        # For each released parley, the arguments of ``ShareWorker.step``.
        self._released: "SimpleQueue[Any]" = SimpleQueue()
        self.__dict__.pop("_unfinished", None)
        for worker in self._workers:
            worker.released = self._released
        self._n_under_way = 0
        # The acts of parleys that have ended and have not been shown yet.
        self._ended: Deque[Sequence] = deque()

    @cached_property
    def _unfinished(self) -> Set[int]:
        """Numbers of the workers whose shares are not done. To find out, a stream is read."""
        workers = enumerate(self._workers)
        return {number for number, worker in workers if not worker.world.epoch_done()}

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Begin a pass over the data, even if the last one is not finished."""
        self._stop_runs()
        while self._crew.busy:
            self._crew.listen()
        super().start_epoch(epoch, seed)
        self._seed = seed
        for worker in self._workers:
            worker.world.start_epoch(epoch, seed)
        self._begin()

    def _parley(self) -> None:
        for number in self._unfinished - set(self._crew.busy):
            self._crew.ask(number, "run")
        is_full = self._n_under_way >= AHEAD * len(self._workers)
        while (is_full or not self._unfinished) and not self._ended:
            self._collect_messages()
        self.acts = self._ended.popleft() if self._ended else ()
        if self._unfinished:
            self._n_released += 1
            self._n_under_way += 1
            settings = {} if self.optimizer is None else settings_of(self.optimizer)
            self._released.put((self._n_released, settings, self._at_once, self._seed))

    def _collect_messages(self) -> None:
        """Record the parleys that have ended, and advance the optimizer by the workers' steps."""
        for message in self._crew.listen():
            if message.is_answer:
                continue
            acts, is_done, is_step = message.value
            self._n_under_way -= 1
            self._ended.append(acts)
            if is_done:
                self._unfinished.discard(message.worker)
            if is_step:
                self.agent.weights_changed()
                self.optimizer.nr_update[KEY] += 1
                self.optimizer.step_schedules()
        if not self._unfinished:  # No worker will take the released parleys that remain.
            self._n_under_way = 0

    def _settle(self) -> None:
        """Wait until no parley is in progress."""
        while self._unfinished and self._n_under_way:
            self._collect_messages()

    def _stop_runs(self) -> None:
        """Make workers return from ``run`` after their current parleys."""
        try:
            while True:
                self._released.get_nowait()
        except Empty:
            for _ in self._workers:
                self._released.put(None)

    def _epoch_done(self) -> bool:
        return not (self._unfinished or self._ended)

    def report(self) -> Dict[str, Metric]:
        """Wait for parleys in progress, then return the merged metrics of all workers (see
        ``World.report``)."""
        self._settle()
        return merge_reports(*(worker.world.report() for worker in self._workers))

    def reset_metrics(self) -> None:
        """Wait for parleys in progress, then reset the metrics of all workers."""
        self._settle()
        for worker in self._workers:
            worker.world.reset_metrics()

    def shutdown(self) -> None:
        """Join the threads after their current parleys, and shut down their worlds."""
        super().shutdown()
        self._crew.end()
        self._n_under_way = 0
        for worker in self._workers:
            worker.world.shutdown()


class _ReleasedWorker(ShareWorker):
    """Make a parley for each item of ``released``, and an update of the weights if there is an
    optimizer.

    released (SimpleQueue): Arguments of ``step`` for each parley; None ends the queue.
    """

    released: "SimpleQueue[Any]"

    def run(self, tell: Callable[[Any], None]) -> None:
        """Work until the share is done or ``released`` ends.

        tell (Callable[[Any], None]): Function that is called after each parley with its acts,
            whether the share is done, and whether the weights were updated.
        """
        self.limit_threads()
        is_done = False
        while not is_done and (released := self.released.get()) is not None:
            is_step = False
            if self.optimizer is None:
                self.world.parley()
            else:
                is_step = self.step(*released).examples > 0
            is_done = self.world.epoch_done()
            tell((self.world.acts, is_done, is_step))


def _check_optimizer(optimizer: Any) -> None:
    if optimizer is None:
        raise ProtocolError(
            "HogwildWorld needs an optimizer to train: give it one, as in "
            "HogwildWorld(teacher, agent, n_workers, optimizer). (In a config, [runner] "
            '@runners = "thincdialog.Hogwild.v1" trains with several workers.)'
        )
    if reason := why_not_shared(optimizer):
        raise ProtocolError(f"HogwildWorld cannot train with this optimizer: it {reason}.")
