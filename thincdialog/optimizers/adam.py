"""Thinc's Adam computed by the model's ops, which let other threads run at the same time."""

from typing import Any, Tuple

import numpy
from thinc.api import Ops, Optimizer
from thinc.types import Floats1d
from thinc.util import is_numpy_array

from ..ops.compiled import load_kernels
from ..ops.dialog_fast_ops import is_compiled
from .moments import least_second_moment
from .state import Key
from .watched import stepping

# Number of floats in a block, so that all arrays of a step fit into a core's cache.
BLOCK_FLOATS = 32768
# For kernels, a whole vector is the first row of a table.
FIRST_ROW: Any = numpy.zeros(1, dtype="int64")


def thincs_step(
    optimizer: Any, key: Key, weights: Any, gradient: Any, ops: Ops, scale: float = 1.0
) -> Any:
    """Take one step of a Thinc optimizer, and set the gradient to zero.

    key (Key): Key of the optimizer's state.
    weights (Floats1d): Changed in place, unless the optimizer returns new arrays.
    gradient (Floats1d): As long as the weights.
    ops (Ops): Ops of the model.
    scale (float): Factor of the gradient, applied first.
    RETURNS (Floats1d): The weights after the step.
    """
    if scale != 1.0:
        gradient *= scale
    # A class derived from Thinc's may define its own step.
    if type(optimizer) is Optimizer and is_numpy_array(weights):
        optimizer = AdamByOps(optimizer, ops)
    stepped, _ = stepping(optimizer)(key, weights, gradient)
    gradient.fill(0)
    return stepped


class AdamByOps(Optimizer):
    """Take the steps of a Thinc optimizer, but let other threads run during steps of Adam. On x86,
    NumPy's ops return the same weights as Thinc, bit for bit.

    If workers share the moments, a step may read the first moment of one worker and the second
    of another. Dividing a first moment by the root of a much smaller second moment gives a huge
    step, which ruins a weight. So each step raises the second moment to the smallest value that
    the first one allows.

    optimizer (Optimizer): Optimizer whose settings, arrays and counts are used.
    ops (Ops): Ops of the model, on the CPU.
    is_shared (bool): Whether other workers change the arrays at the same time.
    """

    def __init__(self, optimizer: Optimizer, ops: Ops, is_shared: bool = False):
        for name in Optimizer.__slots__:
            setattr(self, name, getattr(optimizer, name))
        self._ops, self._is_shared = ops, is_shared

    def _adam(
        self,
        ops: Ops,
        weights: Floats1d,
        gradient: Floats1d,
        lr_scale: float,
        key: Key,
        n_updates: int,
    ) -> Tuple[Floats1d, Floats1d]:
        values: Any = weights
        gradients: Any = gradient
        arrays: Any = (self.mom1, self.mom2)
        for moments in arrays:
            if key not in moments:
                moments[key] = numpy.zeros_like(weights)
        mom1, mom2 = (moments[key] for moments in arrays)
        fix = (1.0 - self.b2**n_updates) ** 0.5 / (1.0 - self.b1**n_updates)
        rate = self.learn_rate * fix * lr_scale
        least = least_second_moment(self.b1, self.b2, n_updates) if self._is_shared else 0.0
        if is_compiled(self._ops):
            rows = [each[None] for each in (values, gradients, mom1, mom2)]
            settings = (1.0, self.b1, self.b2, least, self.eps, rate, 1.0, 0.0, 0.0)
            load_kernels("steps").adam(*rows, FIRST_ROW, tuple(map(float, settings)))
            return weights, gradient
        single: Any = numpy.float32
        b1, b2 = single(self.b1), single(self.b2)
        for start in range(0, weights.shape[0], BLOCK_FLOATS):
            now = slice(start, start + BLOCK_FLOATS)
            d, first, second = gradients[now], mom1[now], mom2[now]
            if self._is_shared:  # Copies, which other workers cannot change during the step.
                first = first.copy()
                second = numpy.maximum(second, single(least) * (first * first))
            with numpy.errstate(all="ignore"):  # Thinc does not warn, either.
                first *= b1
                first += d * (single(1) - b1)
                second *= b2
                step = d * d
                step *= single(1) - b2
                second += step
                numpy.sqrt(second, out=step)
                step += single(self.eps)
                numpy.divide(first, step, out=step)
                step *= single(rate)
                values[now] -= step
            if self._is_shared:
                mom1[now], mom2[now] = first, second
        return weights, gradient
