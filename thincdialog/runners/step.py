"""One step of training: parleys of a world, and an update of the weights."""

import math
from typing import Any

from ..contract import is_users, place_of
from ..errors import TrainingError
from ..ops.later import Later
from ..protocol import Learner, StepReport
from ..worlds import World


def gather(agent: Learner, world: World, seed: int, step: int, n: int) -> None:
    """Accumulate an agent's gradient for one update: of ``n`` microbatches, or of those that
    remain in the epoch, which is not done, if there are fewer.

    agent (Learner): The world's agent; its random draws follow from seed, step and microbatch.
    step (int): Number of the update, from 1.
    n (int): Microbatches (parleys), 1 or more.
    """
    for number in range(n):
        if number and world.epoch_done():
            break
        agent.begin_microbatch(seed, step, number)
        world.parley()


def one_step(
    agent: Learner, world: World, optimizer: Any, seed: int, step: int, n: int
) -> StepReport:
    """Make one update of the weights, or none if no example had a label.

    Arguments as of ``gather``.
    RAISES (TrainingError): If the loss or the gradient is not finite.
    """
    gather(agent, world, seed, step, n)
    learn_rate = getattr(optimizer, "learn_rate", None)
    report = agent.update(optimizer)
    loss, norm = report.loss, report.gradient_norm
    if loss is not None and not isinstance(loss, Later) and not math.isfinite(loss):
        own = type(agent).update
        where = f"{place_of(own)}: " if is_users(own) else ""
        text = f"{where}the loss of step {step} is {report.loss}: try a lower learn_rate"
        raise TrainingError(text)
    # A custom agent may count with NumPy's numbers, which JSON cannot hold.
    return report._replace(
        examples=int(report.examples),
        loss=loss if loss is None or isinstance(loss, Later) else float(loss),
        gradient_norm=norm if isinstance(norm, Later) else float(norm),
        learn_rate=None if learn_rate is None else float(learn_rate),
    )
