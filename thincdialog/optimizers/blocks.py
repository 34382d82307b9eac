"""Steps of Thinc's optimizers, made by the model's ops in parts that stay in a core's cache."""

from typing import Any, Dict, Tuple

import numpy
from thinc.api import Ops, Optimizer
from thinc.types import Floats1d
from thinc.util import is_numpy_array

from .state import Key, arrays_of
from .watched import stepping

# Floats a block. Thinc goes over all that it is given several times, and makes arrays as long.
BLOCK_FLOATS = 131072


def step_in_blocks(
    optimizer: Any, key: Key, weights: Any, gradient: Any, ops: Ops, scale: float = 1.0
) -> Any:
    """One step of any optimizer of Thinc's kind. One that is Thinc's own steps block by block,
    Adam through the model's ops: on x86 with the same bits, but for compiled ops. The gradient
    is zero from then on.

    key (Key): Under which the state is kept.
    weights (Floats1d): Changed in place, but by an optimizer that does not.
    gradient (Floats1d): As long as the weights.
    ops (Ops): The model's.
    scale (float): The gradient is multiplied by this first.
    RETURNS (Floats1d): The weights after the step.
    """
    # A class derived from Thinc's may have a step of its own.
    is_thincs = type(optimizer) is Optimizer
    adds_weights = is_thincs and optimizer.L2 and not optimizer.L2_is_weight_decay
    is_whole = not is_thincs or not is_numpy_array(weights) or not len(weights)
    if scale != 1.0 and (is_whole or optimizer.grad_clip or adds_weights):
        gradient *= scale
        scale = 1.0
    if is_whole:
        stepped, _ = stepping(optimizer)(key, weights, gradient)
        if not is_thincs:  # Thinc's own sees to that.
            gradient.fill(0)
        return stepped
    of_block = _OfBlock(optimizer, ops)
    # If it clips, it clips the whole, with what L2 makes of it.
    if adds_weights:
        gradient += optimizer.L2 * weights
        of_block.L2 = 0.0
    if optimizer.grad_clip:
        ops.clip_gradient(gradient, optimizer.grad_clip)
        of_block.grad_clip = 0.0
    arrays = _state(optimizer, key, weights)
    n_before = optimizer.nr_update[key]
    optimizer.nr_update[key] += 1
    for start in range(0, weights.shape[0], BLOCK_FLOATS):
        now = slice(start, start + BLOCK_FLOATS)
        d_block = gradient[now]
        if scale != 1.0:
            d_block *= scale
        of_block.nr_update = {key: n_before}
        for name, array in arrays.items():
            setattr(of_block, name, {key: array[now]})
        of_block(key, weights[now], d_block)
    return weights


class _OfBlock(Optimizer):
    """Steps as another optimizer does, in views of its state, by ops that it is given."""

    def __init__(self, optimizer: Optimizer, ops: Ops):
        for name in Optimizer.__slots__:
            setattr(self, name, getattr(optimizer, name))
        self._ops = ops

    def _adam(self, ops: Ops, *step: Any) -> Tuple[Floats1d, Floats1d]:
        return super()._adam(self._ops, *step)


def _state(optimizer: Optimizer, key: Key, weights: Any) -> Dict[str, Any]:
    """What the optimizer keeps of all weights; made here where its first step would make it."""
    kept = []
    if optimizer.use_radam or (optimizer.b1 > 0.0 and optimizer.b2 > 0.0):
        kept += [optimizer.mom1, optimizer.mom2]
    if optimizer.averages is not None:
        kept.append(optimizer.averages)
    for arrays in kept:
        if key not in arrays:
            arrays[key] = numpy.zeros_like(weights)
    return arrays_of(optimizer, key)
