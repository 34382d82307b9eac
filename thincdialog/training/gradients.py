"""Sums the gradients of microbatches in a fixed tree.

The order of additions depends only on how many microbatches there are, so the
sum has the same bits whoever computed which of them.
"""

from typing import List, Tuple

from thinc.types import Floats1d

from ..agents.compiled_steps import CompiledSteps
from ..agents.model_agent import ModelAgent
from ..worlds import World


class GradientTree:
    """Pairwise sum of flat gradients, as a binary counter: equal-sized partial
    sums are added as soon as there are two of them.

        ((g0 + g1) + (g2 + g3)) + g4
    """

    def __init__(self) -> None:
        self._partial: List[Tuple[int, Floats1d]] = []

    def add(self, gradient: Floats1d) -> None:
        """Take in the gradient of the next microbatch; it is copied.

        gradient (Floats1d): Shape (n_parameters,), float32.
        """
        size, total = 1, gradient.copy()
        while self._partial and self._partial[-1][0] == size:
            size, total = size * 2, self._partial.pop()[1] + total
        self._partial.append((size, total))

    def take(self, into: Floats1d) -> None:
        """Write the sum of all microbatches into a vector and start afresh.

        into (Floats1d): Shape (n_parameters,), float32.
        RAISES (ValueError): If nothing was added.
        """
        if not self._partial:
            raise ValueError("no gradient was added since the last take()")
        total = self._partial.pop()[1]
        while self._partial:
            total = self._partial.pop()[1] + total
        into[:] = total


def gathered_loss(agent: ModelAgent) -> float:
    """Mean loss of the examples whose gradient waits for ``update``, where the metrics were
    reset before them."""
    if isinstance(agent, CompiledSteps):
        return agent.kept_loss()
    return float(agent.counters.loss.value())


def gather_gradient(agent: ModelAgent, world: World, seed: int, step: int, n: int) -> int:
    """Gather the gradient of one step in ``agent.parameters.gradients``: of ``n``
    microbatches, or as many as the epoch still has.

    agent (ModelAgent): The world's agent; its random draws follow from seed, step and
        microbatch.
    n (int): Microbatches (parleys) for one step, 1 or more.
    RETURNS (int): Examples that were learnt from; 0 if none had a label.
    """
    tree = GradientTree() if n > 1 else None
    microbatch = 0
    while microbatch < n and not world.epoch_done():
        agent.seed(seed, step, microbatch)
        world.parley()
        microbatch += 1
        if tree is not None:
            tree.add(agent.parameters.gradients)
            agent.parameters.clear_gradients()
    examples = agent.counters.examples
    if examples and tree is not None:
        tree.take(agent.parameters.gradients)
    return examples
