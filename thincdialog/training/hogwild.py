"""Steps of many workers on the same weights, without locks.

SOURCE: Niu, Recht, Re and Wright 2011, https://arxiv.org/abs/1106.5730
"""

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from ..agents.model_agent import ModelAgent
from ..config import CheckedConfig
from ..metrics import Metric
from ..models.parameters import KEY
from ..optimizers.shared_state import StepsAhead, for_a_worker, lay_out_state
from ..optimizers.stale_steps import describe_stale, stale_settings
from ..parallel import ThreadWorkers, n_cores
from ..protocol import Agent
from ..teachers import Teacher
from ..worlds import HogwildWorld, LateWorkerError, Workers, World, WorldFactory, WorldWorker
from .hogwild_processes import worker_processes
from .interruption import Interrupted, Interruption
from .learning_worker import LearningWorker, Order, learning_worker
from .loop_settings import LoopSettings
from .steps import Learnt, Steps

# How long workers may take, after a signal, to end the steps that they are at: schedulers kill
# some 30 seconds after SIGTERM.
END_SECONDS = 25.0


class HogwildSteps(Steps):
    """Steps of all workers of a world, counted in the order in which they come back.

    Any step has the settings of the optimizer that it would have with one worker, but for
    what Adam needs to learn from stale gradients (``stale_settings``): this process steps the
    schedules, ahead of the steps. No more are released than there is room for before something
    is due, so evaluations, checkpoints and max_steps come at exact steps.

    note (Callable[[str], None]): Told in a line each how many workers take turns, and what
        Adam needs, if it is Adam.
    """

    world: HogwildWorld

    def __init__(
        self,
        agent: ModelAgent,
        world: HogwildWorld,
        settings: LoopSettings,
        note: Callable[[str], None],
    ):
        super().__init__(agent, world, settings)
        self._ahead = StepsAhead(settings.optimizer, KEY)
        if world.at_once < world.workers.n_workers:
            note(f"[hogwild] {world.at_once} of {world.workers.n_workers} workers at a time: "
                 "there are no more processors")  # fmt: skip
        line = describe_stale(self._ahead.now(), world.at_once)
        if line:
            note(line)

    def take(self, step: int, room: float) -> List[Learnt]:
        world = self.world
        # Those that have come in meanwhile are running no more, and not yet counted.
        learnt = self._made()
        if not world.n_running and world.epoch_done():
            return learnt
        n_taken = len(learnt) + world.n_running
        if n_taken < room:
            number = step + n_taken + 1
            world.parley(Order(number, self._for_workers(self._ahead.settings(number))))
        else:
            world.drain()
        return learnt + self._made()

    def settle(self) -> List[Learnt]:
        self.world.drain()
        learnt = self._made()
        self._ahead.settle()
        return learnt

    def _made(self) -> List[Learnt]:
        """Steps that were made since the last call, each with the learning rate of its
        place among them. (At the end of an epoch, some orders find nothing left; their
        numbers are given again, and the last steps may have settings of a later one.)"""
        return [
            learnt._replace(learn_rate=self._for_workers(self._ahead.made())["learn_rate"])
            for learnt in self.world.finished()
            if learnt.examples
        ]

    def _for_workers(self, settings: Mapping[str, float]) -> Dict[str, float]:
        return stale_settings(settings, self.world.at_once)

    def report(self) -> Dict[str, Metric]:
        return self.world.report()

    def reset_metrics(self) -> None:
        self.world.reset_metrics()

    def metrics_state(self) -> Any:
        return self.world.ask_all("metrics_state")

    def set_metrics_state(self, state: Any) -> None:
        self.world.ask_all("set_metrics_state", state)


def hogwild_world(
    checked: CheckedConfig,
    parts: Mapping[str, Any],
    agent: ModelAgent,
    teacher: Teacher,
    code: Optional[str] = None,
    is_ending: Callable[[], bool] = lambda: False,
) -> HogwildWorld:
    """The world of all workers that a config asks for, to be used with ``HogwildSteps``.

    checked (CheckedConfig): The config that ``parts`` were built from.
    parts (Mapping[str, Any]): From ``resolve_config``.
    agent (ModelAgent): Whose weights are learnt; in place from now on for all workers.
    teacher (Teacher): Of the training data.
    code (Optional[str]): Python file that was imported first.
    is_ending (Callable[[], bool]): Whether the run is to end soon.
    RAISES (WorkerError): If a worker process cannot begin, or reads other training data.
    """
    optimizer, settings = parts["training"]["optimizer"], parts["hogwild"]
    state = lay_out_state(optimizer, KEY, agent.parameters.values)
    n_workers: int = settings["workers"]

    def make_worker(number: int) -> LearningWorker:
        share, replica = teacher.share_of(number, n_workers), agent.replica()
        return learning_worker(number, parts, share, replica, for_a_worker(optimizer))

    workers: Workers
    if settings["executor"] == "process":
        workers = worker_processes(checked, agent, teacher, optimizer, state, code)
    else:
        workers = ThreadWorkers(make_worker, n_workers)
    # More at once would make nothing faster, and gradients older.
    return HogwildWorld(workers, at_once=n_cores(), is_ending=is_ending, end_seconds=END_SECONDS)


@contextmanager
def hogwild_steps(
    world: HogwildWorld,
    agent: ModelAgent,
    settings: LoopSettings,
    interruption: Interruption,
    note: Callable[[str], None],
) -> Iterator[Steps]:
    """The steps of all workers, which end with them.

    world (HogwildWorld): From ``hogwild_world``; it is to end if a signal came.
    interruption (Interruption): Receives signals.
    note (Callable[[str], None]): Told in a line what the user should know.
    RAISES (Interrupted): If a worker that hangs is in the way of what a signal asks for:
        what was saved before is what is left.
    """
    with world:
        try:
            yield HogwildSteps(agent, world, settings, note)
        except LateWorkerError as error:
            note(f"{error}. Nothing more can be saved.")
            assert interruption.received is not None  # Or nobody would be late.
            raise Interrupted(interruption.received) from None


def side_by_side(
    make_world: WorldFactory, n_workers: int, is_ending: Callable[[], bool] = lambda: False
) -> WorldFactory:
    """Worlds for evaluation in which several threads show their shares to replicas.

    make_world (WorldFactory): Gives the world of one of them.
    n_workers (int): How many.
    is_ending (Callable[[], bool]): Whether the run is to end soon: then nobody waits long for
        a thread in the middle of a call, which changes nothing that is saved.
    """

    def create_hogwild_world(teacher: Teacher, agent: Agent) -> World:
        def make_worker(number: int) -> WorldWorker:
            return WorldWorker(make_world(teacher.share_of(number, n_workers), agent.replica()))

        threads = ThreadWorkers(make_worker, n_workers)
        return HogwildWorld(threads, is_ending=is_ending, end_seconds=END_SECONDS)

    return create_hogwild_world
