"""The types that a model agent returns for a batch: the model's input, and the loss of its
output."""

from numbers import Integral
from typing import Any, NamedTuple, Optional, Sequence

from ..contract import Returned
from ..examples.batch import Batch
from ..messages import Message


class Inputs(NamedTuple):
    """Hold the model's input for a batch, as ``read`` returns it.

    batch (Batch): The examples to train on: all of them, or those that can be used.
    X (Any): The model's input: ids as a Ragged on the host, floats on the model's device.
    targets (Any): Values that ``judge`` needs in addition to the model's output.
    places (Optional[Sequence[int]]): Index of each example in the batch that was passed to
        ``read``, if some were left out.
    """

    batch: Batch
    X: Any
    targets: Any = None
    places: Optional[Sequence[int]] = None


class Judged(NamedTuple):
    """Hold the loss and the gradient of the model's output, as ``judge`` returns them.

    gradient (Any): Gradient of the sum of the losses, with the shape of the output.
    loss (Any): Sum of the losses (nats): a float, or an array of one number on a device.
    weight (int): Number of losses in the sum; the gradient of a step is divided by their total.
    unit (str): Unit of the losses: "examples" or "tokens".
    n_right (Any): Number of examples that the agent would have answered correctly: an int, or an
        array of one number on a device.
    n_judged (int): Number of examples that ``n_right`` is out of; 0 if correctness is not known.
    replies (Optional[Sequence[Message]]): The agent's reply to each example.
    """

    gradient: Any
    loss: Any
    weight: int
    unit: str = "examples"
    n_right: Any = 0
    n_judged: int = 0
    replies: Optional[Sequence[Message]] = None


def _are_inputs_or_none(value: Any, *given: Any) -> bool:
    return value is None or isinstance(value, Inputs)


def _is_judged(value: Any, Y: Any, *given: Any) -> bool:
    # Arrays have a shape; other kinds of output have none, and are not compared.
    shapes = (getattr(each, "shape", None) for each in (getattr(value, "gradient", None), Y))
    return (
        isinstance(value, Judged)
        and len(set(shapes)) == 1
        and isinstance(value.weight, Integral)
        and value.weight > 0
        and value.unit in ("examples", "tokens")
    )


# Return values of ``read`` and ``judge`` in a custom agent.
RETURNED = {
    "read": Returned("Inputs, or None if there is nothing to learn", _are_inputs_or_none),
    "judge": Returned(
        'Judged: gradient shaped like Y, weight an int above 0, unit "examples" or "tokens"',
        _is_judged,
    ),
}
