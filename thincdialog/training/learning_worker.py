"""One of several workers that learn the same weights."""

from typing import Any, Dict, List, Mapping, NamedTuple

import numpy
from thinc.api import Optimizer

from ..agents.model_agent import ModelAgent
from ..metrics import Metric
from ..models.parameters import KEY
from ..optimizers.shared_state import set_step
from ..teachers import Teacher
from ..worlds import World, WorldWorker
from .steps import Learnt, one_step


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


def learning_worker(
    number: int, parts: Mapping[str, Any], teacher: Teacher, agent: ModelAgent, optimizer: Any
) -> LearningWorker:
    """The worker of a run.

    number (int): Of the worker, from 0.
    parts (Mapping[str, Any]): From ``resolve_config``.
    teacher (Teacher): Its share.
    agent (ModelAgent): Its replica.
    optimizer (Optimizer): From ``for_a_worker``.
    """
    seed, n = parts["system"]["seed"], parts["training"]["accumulate_gradient"]
    return LearningWorker(number, parts["world"](teacher, agent), agent, optimizer, seed, n)
