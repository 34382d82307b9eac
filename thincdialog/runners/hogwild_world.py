"""Hogwild as a world: threads share the data and the weights."""

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

# Parleys that may be released and not yet shown, for each worker, so that none waits for the
# thread that releases them. (With 2, evaluations took a fifth longer.)
AHEAD = 16


@registry.worlds("thincdialog.HogwildWorld.v1")
def build_hogwild_world(
    n_workers: int = 2, conversation: Optional[WorldFactory] = None
) -> WorldFactory:
    """Several workers evaluate: threads, each with a share of the data. (Training with several
    workers is chosen in ``[runner]``.)

    n_workers (int): Number of workers, 1 or more.
    conversation (Optional[WorldFactory]): The world of each worker, such as
        "thincdialog.BatchWorld.v1"; null: "thincdialog.PartnerWorld.v1".
    """
    make_world = conversation or PartnerWorld
    return partial(HogwildWorld, n_workers=n_workers, make_world=make_world)


def with_threads(
    experiment: Experiment, n_workers: int, interruption: Optional[Interruption]
) -> WorldFactory:
    """A world to evaluate in with several threads, whose scores are those of one. There are no
    threads for an agent on a GPU, one whose replies depend on the batches, or one of a user that
    counts by itself and has no replica."""
    agent, make_world = experiment.agent, experiment.evaluation["world"]
    counts_alone = type(agent).replica is Agent.replica and type(agent).report != Agent.report
    is_on_cpu = experiment.ops.device_type == "cpu"
    if n_workers == 1 or agent.replies_need_batch or counts_alone or not is_on_cpu:
        return make_world
    how = {"make_world": make_world, "interruption": interruption}
    return partial(HogwildWorld, n_workers=n_workers, **how)


class HogwildWorld(World):
    """Workers, threads of this process, share a teacher's data: each has a world of its own with
    a replica of the agent. (ParlAI's world of this name.)

    ``parley`` releases one worker for a parley of its world. It waits only if too many
    parleys are under way, or if all data is handed out; then ``acts`` are those of a parley that
    has ended, else there are none. ``shutdown`` joins the workers.

        with HogwildWorld(train, agent, 2, optimizer) as world:
            while not world.epoch_done():
                world.parley()
            print(world.report())

    teacher (Teacher): Where the messages come from.
    agent (Agent): Who answers. It is on the CPU.
    n_workers (int): Number of workers, 1 or more.
    optimizer (Optional[Optimizer]): With one, each worker updates the weights, which all of
        them share, after each of its parleys; so do not call ``agent.update``.
    make_world (WorldFactory): Gives the world of each worker.
    interruption (Optional[Interruption]): Knows whether the run is to end.
    RAISES (ProtocolError): If the agent is to learn and there is no optimizer, or its state
        cannot be shared; if the agent is to be evaluated, and its replies depend on the batches.
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
        # A crew notes something only if a signal ends the run.
        ending = interruption or Interruption()
        self._crew = Crew(self._workers, self._call_back, ending, lambda line: None)
        self._at_once = min(n_workers, n_cores())
        self._n_released = self._seed = 0
        self._begin()

    def _begin(self) -> None:
        """All workers are at the beginning of an epoch."""
        # Arguments of ``ShareWorker.step``.
        self._released: "SimpleQueue[Any]" = SimpleQueue()
        self.__dict__.pop("_left", None)
        for worker in self._workers:
            worker.released = self._released
        self._n_under_way = 0
        # Of parleys that have ended, and were not shown.
        self._ended: Deque[Sequence] = deque()

    @cached_property
    def _left(self) -> Set[int]:
        """Workers that have something left of their shares; a stream is read to tell."""
        workers = enumerate(self._workers)
        return {number for number, worker in workers if not worker.world.epoch_done()}

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Begin a pass over the data, whatever is left of the last one."""
        self._call_back()
        while self._crew.busy:
            self._crew.listen()
        super().start_epoch(epoch, seed)
        self._seed = seed
        for worker in self._workers:
            worker.world.start_epoch(epoch, seed)
        self._begin()

    def _parley(self) -> None:
        for number in self._left - set(self._crew.busy):
            self._crew.ask(number, "run")
        is_full = self._n_under_way >= AHEAD * len(self._workers)
        while (is_full or not self._left) and not self._ended:
            self._listen()
        self.acts = self._ended.popleft() if self._ended else ()
        if self._left:
            self._n_released += 1
            self._n_under_way += 1
            settings = {} if self.optimizer is None else settings_of(self.optimizer)
            self._released.put((self._n_released, settings, self._at_once, self._seed))

    def _listen(self) -> None:
        for told in self._crew.listen():
            if told.is_answer:
                continue
            acts, is_done, is_step = told.value
            self._n_under_way -= 1
            self._ended.append(acts)
            if is_done:
                self._left.discard(told.worker)
            if is_step:
                self.agent.weights_changed()
                self.optimizer.nr_update[KEY] += 1
                self.optimizer.step_schedules()
        if not self._left:  # No worker takes what was released too much.
            self._n_under_way = 0

    def _settle(self) -> None:
        """Wait until no parley is under way."""
        while self._left and self._n_under_way:
            self._listen()

    def _call_back(self) -> None:
        """Let workers come back once their parleys have ended."""
        try:
            while True:
                self._released.get_nowait()
        except Empty:
            for _ in self._workers:
                self._released.put(None)

    def _epoch_done(self) -> bool:
        return not (self._left or self._ended)

    def report(self) -> Dict[str, Metric]:
        """See ``World.report``: of all workers, once their parleys have ended."""
        self._settle()
        return merge_reports(*(worker.world.report() for worker in self._workers))

    def reset_metrics(self) -> None:
        """Start the metrics of all workers afresh, once their parleys have ended."""
        self._settle()
        for worker in self._workers:
            worker.world.reset_metrics()

    def shutdown(self) -> None:
        """Let the workers end their parleys, and join them."""
        super().shutdown()
        self._crew.end()
        for worker in self._workers:
            worker.world.shutdown()


class _ReleasedWorker(ShareWorker):
    """Makes a parley, and an update of the weights if it has an optimizer, whenever it is
    released.

    released (SimpleQueue): What ``step`` is called with; None: there is no more.
    """

    released: "SimpleQueue[Any]"

    def run(self, tell: Callable[[Any], None]) -> None:
        """Work until the share is done, or there is no more."""
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
            "HogwildWorld has no optimizer, and its workers are to learn: give it one, as in "
            "HogwildWorld(teacher, agent, n_workers, optimizer). (In a config, [runner] "
            '@runners = "thincdialog.Hogwild.v1" trains with several workers.)'
        )
    if reason := why_not_shared(optimizer):
        raise ProtocolError(f"HogwildWorld cannot train with this optimizer: it {reason}.")
