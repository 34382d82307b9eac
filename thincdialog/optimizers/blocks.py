"""Steps of Thinc's optimizers, made in parts that stay in a core's cache."""

import copy
from typing import Any

from thinc.api import Optimizer
from thinc.backends import get_array_ops
from thinc.util import is_numpy_array

from .state import Key, arrays_of
from .watched import stepping

# Floats a block. Thinc goes over all that it is given several times, and makes arrays as long.
BLOCK_FLOATS = 65536


def step_in_blocks(optimizer: Any, key: Key, weights: Any, gradient: Any) -> Any:
    """One step of any optimizer of Thinc's kind: block by block if it is Thinc's own and the
    arrays are long, with the same bits. The gradient is zero from then on.

    key (Key): Under which the state is kept.
    weights (Floats1d): Changed in place, but by an optimizer that does not.
    gradient (Floats1d): As long as the weights.
    RETURNS (Floats1d): The weights after the step.
    """
    if not _goes_in_blocks(optimizer, key, weights):
        stepped, _ = stepping(optimizer)(key, weights, gradient)
        if type(optimizer) is not Optimizer:  # Thinc's own sees to that.
            gradient.fill(0)
        return stepped
    if optimizer.grad_clip:
        get_array_ops(weights).clip_gradient(gradient, optimizer.grad_clip)
    n_before = optimizer.nr_update[key]
    optimizer.nr_update[key] += 1
    # It steps as the optimizer does, in views of its state.
    of_block = copy.copy(optimizer)
    of_block.grad_clip = 0.0
    arrays = arrays_of(optimizer, key)
    for start in range(0, weights.shape[0], BLOCK_FLOATS):
        now = slice(start, start + BLOCK_FLOATS)
        of_block.nr_update = {key: n_before}
        for name, array in arrays.items():
            setattr(of_block, name, {key: array[now]})
        of_block(key, weights[now], gradient[now])
    return weights


def _goes_in_blocks(optimizer: Any, key: Key, weights: Any) -> bool:
    """Whether each number's step depends on nothing but its own, its state and the settings."""
    # A class derived from it may have a step of its own.
    if type(optimizer) is not Optimizer or not is_numpy_array(weights):
        return False
    if weights.shape[0] <= BLOCK_FLOATS:
        return False
    if optimizer.grad_clip and optimizer.L2 and not optimizer.L2_is_weight_decay:
        return False  # Clipped is what L2 makes of the whole.
    # The first step makes the state.
    known, needed = arrays_of(optimizer, key), set()
    if optimizer.use_radam or (optimizer.b1 > 0.0 and optimizer.b2 > 0.0):
        needed |= {"mom1", "mom2"}
    if optimizer.averages is not None:
        needed.add("averages")
    return needed <= set(known)
