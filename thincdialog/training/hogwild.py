"""Steps of many workers on the same weights, without locks.

SOURCE: Niu, Recht, Re and Wright 2011, https://arxiv.org/abs/1106.5730
"""

import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

import numpy
from thinc.api import Optimizer, set_current_ops

from ..agents.model_agent import ModelAgent
from ..config import CheckedConfig, load_code, load_config, resolve_config, write_config
from ..errors import ConfigError, DialogError
from ..metrics import Metric
from ..models.parameters import KEY
from ..ops.choice import ops_to_train
from ..optimizers.shared_state import (
    StepsAhead,
    for_a_worker,
    lay_out_state,
    set_step,
    use_state,
)
from ..optimizers.stale_steps import describe_stale, stale_settings
from ..parallel import ProcessWorkers, Recipe, SharedArrays, ThreadWorkers
from ..protocol import Agent
from ..teachers import Teacher
from ..worlds import HogwildWorld, World, WorldFactory, WorldWorker
from ..worlds.world_worker import Workers
from .loop_settings import LoopSettings
from .steps import Learnt, Steps, one_step
from .task import split_of

VALUES = "values"


class Order(NamedTuple):
    """What a worker is told of the step that it is to make.

    step (int): Its number among all workers', from 1.
    settings (Mapping[str, float]): Of the optimizer.
    """

    step: int
    settings: Mapping[str, float]


class LearningWorker(WorldWorker):
    """Makes steps with a replica of the agent.

    number (int): Of the worker, from 0.
    agent (ModelAgent): Of the world; its weights are everybody's.
    optimizer (Optimizer): From ``for_a_worker``.
    seed (int): The run's.
    n_microbatches (int): Parleys for one step.
    """

    def __init__(
        self,
        number: int,
        world: World,
        agent: ModelAgent,
        optimizer: Optimizer,
        seed: int,
        n_microbatches: int,
    ):
        super().__init__(world)
        self.number = number
        self.agent, self.optimizer = agent, optimizer
        self.seed, self.n_microbatches = seed, n_microbatches

    def learn(self, order: Order) -> Learnt:
        set_step(self.optimizer, KEY, order.step - 1, order.settings)
        # Overflow ends in an error that names the examples.
        with numpy.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return one_step(
                self.agent, self.world, self.optimizer, self.seed, order.step, self.n_microbatches
            )

    def report(self) -> Dict[str, Metric]:
        return dict(self.agent.report())

    def metrics_state(self) -> Any:
        """What ``report`` is made of, as JSON values."""
        return self.agent.metrics_state()

    def set_metrics_state(self, states: List[Mapping[str, Any]]) -> None:
        """Take back this worker's part of what all ``metrics_state`` gave."""
        self.agent.reset_metrics()
        self.agent.set_metrics_state(states[self.number])


class HogwildSteps(Steps):
    """Steps of all workers of a world, counted in the order in which they come back.

    Any step has the settings of the optimizer that it would have with one worker, but for
    what Adam needs to learn from stale gradients (``stale_settings``): this process steps the
    schedules, ahead of the steps. No more are released than there is room for before something
    is due, so evaluations, checkpoints and max_steps come at exact steps.

    note (Callable[[str], None]): Told in a line what Adam needs, if it is Adam.
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
        line = describe_stale(self._ahead.now(), world.workers.n_workers)
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
        return stale_settings(settings, self.world.workers.n_workers)

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
) -> HogwildWorld:
    """The world of all workers that a config asks for, to be used with ``HogwildSteps``.

    checked (CheckedConfig): The config that ``parts`` were built from.
    parts (Mapping[str, Any]): From ``resolve_config``.
    agent (ModelAgent): Whose weights are learnt; in place from now on for all workers.
    teacher (Teacher): Of the training data.
    code (Optional[str]): Python file that was imported first.
    RAISES (WorkerError): If a worker process cannot begin.
    """
    optimizer, settings = parts["training"]["optimizer"], parts["hogwild"]
    state = lay_out_state(optimizer, KEY, agent.parameters.values)
    n_workers: int = settings["workers"]
    if settings["executor"] == "process":
        return HogwildWorld(_processes(checked, agent, optimizer, state, n_workers, code))

    def make_worker(number: int) -> LearningWorker:
        share, replica = teacher.share_of(number, n_workers), agent.replica()
        return _learning_worker(number, parts, share, replica, for_a_worker(optimizer))

    return HogwildWorld(ThreadWorkers(make_worker, n_workers))


def _learning_worker(
    number: int, parts: Mapping[str, Any], teacher: Teacher, agent: ModelAgent, optimizer: Any
) -> LearningWorker:
    seed, n = parts["system"]["seed"], parts["training"]["accumulate_gradient"]
    return LearningWorker(number, parts["world"](teacher, agent), agent, optimizer, seed, n)


def _processes(
    checked: CheckedConfig,
    agent: ModelAgent,
    optimizer: Optimizer,
    state: Dict[str, Any],
    n_workers: int,
    code: Optional[str],
) -> Workers:
    values: Any = agent.parameters.values
    shared = SharedArrays({VALUES: values, **state})
    agent.parameters.move(shared.arrays[VALUES])  # type: ignore[arg-type]
    use_state(optimizer, KEY, shared.arrays)
    with tempfile.TemporaryDirectory() as folder:
        agent.to_disk(Path(folder))
        arguments = {
            "config": write_config(checked.config),
            "code": code,
            "folder": folder,
            "n_workers": n_workers,
        }
        return ProcessWorkers(Recipe(make_process_worker, arguments), n_workers, shared)


def make_process_worker(
    number: int,
    arrays: Mapping[str, Any],
    config: str,
    code: Optional[str],
    folder: str,
    n_workers: int,
) -> LearningWorker:
    """What the process of a worker runs first: the same as its parent, from the config.

    number (int): Of the worker, from 0.
    arrays (Mapping[str, Any]): The weights, and the state of the optimizer.
    config (str): Its text.
    code (Optional[str]): Python file to import first.
    folder (str): Where the agent was saved; not needed afterwards.
    n_workers (int): How many there are.
    RAISES (DialogError): If the config names functions that nobody has registered here.
    """
    load_code(code)
    try:
        checked = load_config(config, {})
    except ConfigError as error:  # The parent found nothing wrong: it knows more names.
        problems = "; ".join(problem.text for problem in error.problems)
        raise DialogError(
            f"{problems}. A process knows only functions that it has imported itself: put your "
            'own into a file given with --code (in Python: train(..., code="FILE.py")), or set '
            '[hogwild] executor = "thread".'
        ) from None
    set_current_ops(ops_to_train(checked.interpolated["system"]))
    parts = resolve_config(checked)
    teacher = split_of(checked, parts, "train", training=True).share_of(number, n_workers)
    agent: ModelAgent = parts["agent"]
    agent.from_disk(Path(folder), tokenizer=parts["tokenizer"])
    agent.parameters.move(arrays[VALUES])
    agent = agent.replica()  # It learns as one of several.
    optimizer = for_a_worker(parts["training"]["optimizer"])
    use_state(optimizer, KEY, arrays)
    # As in threads: a replica knows that others change the same weights.
    return _learning_worker(number, parts, teacher, agent.replica(), optimizer)


def side_by_side(make_world: WorldFactory, n_workers: int) -> WorldFactory:
    """Worlds for evaluation in which several threads show their shares to replicas.

    make_world (WorldFactory): Gives the world of one of them.
    n_workers (int): How many.
    """

    def create_hogwild_world(teacher: Teacher, agent: Agent) -> World:
        def make_worker(number: int) -> WorldWorker:
            return WorldWorker(make_world(teacher.share_of(number, n_workers), agent.replica()))

        return HogwildWorld(ThreadWorkers(make_worker, n_workers))

    return create_hogwild_world
