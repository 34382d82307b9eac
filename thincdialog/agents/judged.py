"""What a model agent says of a batch: what the model reads, and how good its output is."""

from numbers import Integral
from typing import Any, NamedTuple, Optional, Sequence

from ..contract import Returned
from ..examples.batch import Batch
from ..messages import Message


class Inputs(NamedTuple):
    """What ``read`` makes of a batch.

    batch (Batch): The examples to learn from: all, or those that can be learned.
    X (Any): What the model reads: ids as a Ragged on the host, floats on its device.
    targets (Any): What ``judge`` needs besides the model's output.
    places (Optional[Sequence[int]]): Index of each example in the batch that was read, if some
        were left out.
    """

    batch: Batch
    X: Any
    targets: Any = None
    places: Optional[Sequence[int]] = None


class Judged(NamedTuple):
    """What ``judge`` makes of the model's output.

    gradient (Any): Of the sum of the losses, shaped like the output.
    loss (Any): The sum of the losses (nats): a float, or an array of one number on a device.
    weight (int): How many losses that are; the step's gradient is divided by their number.
    unit (str): The unit of the losses: "examples" or "tokens".
    n_right (Any): How many the agent would have answered rightly: an int, or an array of one
        number on a device.
    n_judged (int): Of how many; 0 if this is not known.
    replies (Optional[Sequence[Message]]): What it would have replied to each example.
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
    # An array has a shape, other kinds of output have none.
    shapes = (getattr(each, "shape", None) for each in (getattr(value, "gradient", None), Y))
    return (
        isinstance(value, Judged)
        and len(set(shapes)) == 1
        and isinstance(value.weight, Integral)
        and value.weight > 0
        and value.unit in ("examples", "tokens")
    )


# What ``read`` and ``judge`` return in a custom agent.
RETURNED = {
    "read": Returned("Inputs, or None if there is nothing to learn", _are_inputs_or_none),
    "judge": Returned(
        'Judged: gradient shaped like Y, weight an int above 0, unit "examples" or "tokens"',
        _is_judged,
    ),
}
