"""Steps of Thinc's optimizers."""

from typing import Any, Tuple

import numpy
from thinc.api import Ops, Optimizer
from thinc.types import Floats1d

from .moments import least_second_moment
from .state import Key
from .watched import stepping

# Number of floats in a block, so that all arrays of a step fit into a core's cache.
BLOCK_FLOATS = 32768


def thincs_step(optimizer: Any, key: Key, weights: Any, gradient: Any, scale: float = 1.0) -> Any:
    """Take one step of a Thinc optimizer, and set the gradient to zero.

    key (Key): Key of the optimizer's state.
    weights (Floats1d): Changed in place, unless the optimizer returns new arrays.
    gradient (Floats1d): As long as the weights.
    scale (float): Factor of the gradient, applied first.
    RETURNS (Floats1d): The weights after the step.
    """
    if scale != 1.0:
        gradient *= scale
    stepped, _ = stepping(optimizer)(key, weights, gradient)
    gradient.fill(0)
    return stepped


class SharedAdam(Optimizer):
    """Take the steps of a Thinc optimizer while other workers change the same arrays. Without other
    workers, Adam's steps on x86 equal Thinc's bit for bit. They let other threads run.

    A step may read the first moment of one worker and the second of another. Dividing a first
    moment by the root of a much smaller second moment gives a huge step, which ruins a weight. So
    each step works on copies, raises the second moment to the smallest value that the first one
    allows, and writes both back.

    optimizer (Optimizer): Optimizer whose settings, arrays and counts are used. If it is Adam, it
        must already have its moments (``lay_out_state``).
    """

    def __init__(self, optimizer: Optimizer):
        for name in Optimizer.__slots__:
            setattr(self, name, getattr(optimizer, name))

    def _adam(
        self,
        ops: Ops,
        weights: Floats1d,
        gradient: Floats1d,
        lr_scale: float,
        key: Key,
        n_updates: int,
    ) -> Tuple[Floats1d, Floats1d]:
        single: Any = numpy.float32
        mom1: Any = self.mom1[key]
        mom2: Any = self.mom2[key]
        fix = (1.0 - self.b2**n_updates) ** 0.5 / (1.0 - self.b1**n_updates)
        b1, b2, eps = map(single, (self.b1, self.b2, self.eps))
        rate = single(self.learn_rate * fix * lr_scale)
        least = single(least_second_moment(self.b1, self.b2, n_updates))
        for start in range(0, weights.shape[0], BLOCK_FLOATS):
            now = slice(start, start + BLOCK_FLOATS)
            d, first, second = gradient[now], mom1[now].copy(), mom2[now]
            second = numpy.maximum(second, least * (first * first))
            with numpy.errstate(all="ignore"):  # Thinc does not warn, either.
                first *= b1
                first += d * (single(1) - b1)
                second *= b2
                second += d * d * (single(1) - b2)
                weights[now] -= first / (numpy.sqrt(second) + eps) * rate
            mom1[now], mom2[now] = first, second
        return weights, gradient
