"""A look at what is learnt, before it is measured and saved."""

from ..contract import is_users, place_of
from ..errors import TrainingError
from ..layers.watched import is_finite
from ..protocol import Learner


def check_weights(agent: Learner, step: int) -> None:
    """See that the weights are numbers. (Where the loss is reported, it tells sooner.)

    step (int): Steps done.
    RAISES (TrainingError): If they are not.
    """
    if is_finite(agent.weights):
        return
    own = type(agent).update
    where = f"{place_of(own)}: " if is_users(own) else ""
    raise TrainingError(
        f"{where}after step {step}, the weights are not finite: try a lower learn_rate"
    )
