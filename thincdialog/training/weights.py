"""Checks the weights before they are evaluated and saved."""

import math

from ..contract import is_users, place_of
from ..errors import TrainingError
from ..protocol import Learner


def check_weights(agent: Learner, step: int) -> None:
    """Check that the weights are finite. (If the loss is reported, it shows this earlier.)

    step (int): Steps done.
    RAISES (TrainingError): If they are not.
    """
    if math.isfinite(float(agent.weights.sum(dtype="d"))):
        return
    own = type(agent).update
    where = f"{place_of(own)}: " if is_users(own) else ""
    raise TrainingError(
        f"{where}after step {step}, the weights are not finite: try a lower learn_rate"
    )
