"""Who makes the steps of training: this process alone."""

from typing import Any, Dict, List, Mapping, NamedTuple

from ..agents.model_agent import ModelAgent
from ..metrics import Metric
from ..worlds import World
from .gradients import gather_gradient
from .loop_settings import LoopSettings


class Learnt(NamedTuple):
    """One step: an update of the weights.

    examples (int): How many it learnt from, 1 or more.
    learn_rate (float): Of the optimizer.
    gradient_norm (float): Of the mean gradient, before clipping.
    loss (float): Mean over the examples since the last evaluation.
    """

    examples: int
    learn_rate: float
    gradient_norm: float
    loss: float


class Steps:
    """Steps of one agent in one world, one after the other.

    world (World): Of the training teacher and the agent.
    """

    def __init__(self, agent: ModelAgent, world: World, settings: LoopSettings):
        self.agent, self.world, self.settings = agent, world, settings

    def take(self, step: int, room: float) -> List[Learnt]:
        """Go on; the world's epoch is not known to be done.

        step (int): Steps made so far.
        room (float): How many more may be made before something else is due, 1 or more.
        RETURNS (List[Learnt]): What was made since the last call; there may be nothing yet.
        """
        learnt = one_step(
            self.agent,
            self.world,
            self.settings.optimizer,
            self.settings.seed,
            step + 1,
            self.settings.accumulate_gradient,
        )
        return [learnt] if learnt.examples else []

    def settle(self) -> List[Learnt]:
        """Wait until no step is under way; what was made since the last call."""
        return []

    def report(self) -> Dict[str, Metric]:
        """Metrics of training since ``reset_metrics``."""
        return self.agent.report()

    def reset_metrics(self) -> None:
        """Start the metrics afresh."""
        self.agent.reset_metrics()

    def metrics_state(self) -> Any:
        """What ``report`` is made of, as JSON values."""
        return self.agent.metrics_state()

    def set_metrics_state(self, state: Mapping[str, Any]) -> None:
        """Take back what ``metrics_state`` gave, in place of what is there."""
        self.agent.reset_metrics()
        self.agent.set_metrics_state(state)


def one_step(
    agent: ModelAgent, world: World, optimizer: Any, seed: int, step: int, n: int
) -> Learnt:
    """Make one update of the weights; none, if no example had a label.

    step (int): Its number, from 1; with the seed, it decides on the agent's random draws.
    n (int): Microbatches (parleys) for it, or as many as the epoch still has.
    RAISES (TrainingError): If the loss or the gradient is not finite.
    """
    examples = gather_gradient(agent, world, seed, step, n)
    if not examples:
        return Learnt(0, 0.0, 0.0, 0.0)
    learn_rate = float(optimizer.learn_rate)
    norm = agent.update(optimizer)
    return Learnt(examples, learn_rate, norm, agent.counters.loss.value())
