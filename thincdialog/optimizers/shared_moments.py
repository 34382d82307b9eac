"""Thinc's Adam and RAdam for moments that several workers change at once."""

from typing import Any, Callable, Tuple

import numpy
from thinc.api import Ops, Optimizer
from thinc.types import Floats1d

from .moments import least_second_moment
from .state import Key

# Floats a block: short work between taking moments and putting them back, in a core's cache.
_BLOCK_FLOATS = 32768


class SharedMoments(Optimizer):
    """A step takes its moments from those of all, changes them as Thinc does, and puts them
    back. What was taken may be one worker's first moment and another's second; a first moment
    over the root of a much smaller second one is a step that ruins a weight. So the second is
    made as large as it must be beside the first.

    optimizer (Optimizer): One that makes Thinc's steps, on the CPU; its settings and arrays
        are taken over.
    """

    def __init__(self, optimizer: Optimizer):
        for name in Optimizer.__slots__:
            setattr(self, name, getattr(optimizer, name))
        # During a step they hold what was taken, which is nobody else's.
        self.mom1, self.mom2 = dict(optimizer.mom1), dict(optimizer.mom2)

    def _adam(self, *step: Any) -> Tuple[Floats1d, Floats1d]:
        return self._in_blocks(super()._adam, *step)

    def _radam(self, *step: Any) -> Tuple[Floats1d, Floats1d]:
        return self._in_blocks(super()._radam, *step)

    def _in_blocks(
        self,
        make_step: Callable[..., Any],
        ops: Ops,
        weights: Floats1d,
        gradient: Floats1d,
        lr_scale: float,
        key: Key,
        n_updates: int,
    ) -> Tuple[Floats1d, Floats1d]:
        mom1: Any = self.mom1[key]
        mom2: Any = self.mom2[key]
        least = numpy.float32(least_second_moment(self.b1, self.b2, n_updates))
        try:
            for start in range(0, weights.shape[0], _BLOCK_FLOATS):
                now = slice(start, start + _BLOCK_FLOATS)
                first = mom1[now].copy()
                second = numpy.maximum(mom2[now], least * (first * first))
                self.mom1[key], self.mom2[key] = first, second
                make_step(ops, weights[now], gradient[now], lr_scale, key, n_updates)
                mom1[now], mom2[now] = self.mom1[key], self.mom2[key]
        finally:
            self.mom1[key], self.mom2[key] = mom1, mom2
        return weights, gradient
