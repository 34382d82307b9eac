"""A check of the weights before they are evaluated and saved."""

import math

from ..contract import is_users, place_of
from ..errors import TrainingError
from ..protocol import Learner


def check_weights(agent: Learner, step: int) -> None:
    """Check that the weights are finite. (If the agent reports its loss, that shows the problem
    earlier.)

    step (int): Number of steps so far.
    RAISES (TrainingError): If the weights are not finite.
    """
    if math.isfinite(float(agent.weights.sum(dtype="d"))):
        return
    own = type(agent).update
    where = f"{place_of(own)}: " if is_users(own) else ""
    raise TrainingError(
        f"{where}after step {step}, the weights are not finite: try a lower learn_rate"
    )
