"""A worker's end of the way between it and a server of gradients."""

from typing import Any, Optional, Sequence, Tuple

from ...errors import DialogError, TrainingError
from ...loader.failure import Failure
from ...models.gradient_sum import dense_slices
from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Segment
from .gradient import Gradient
from .gradient_server import LearnedUnit
from .mapped_arrays import Layout, MappedArrays
from .shared_plane import shared_layout, write_rows
from .slots import Slots


class ServerDied(Exception):
    """There is no server any more, or no way to it; the run's process starts another."""


def server_layout(n: int, stretches: Sequence[Segment], n_workers: int) -> Layout:
    """What server and workers of one machine have in common: for each worker a gradient, and
    the weights that it learns with."""
    layout = shared_layout(n, stretches, Slots(n_workers, n_workers))
    return layout + [(f"values {worker}", (n,), "<f4") for worker in range(n_workers)]


class ServerLink:
    """Brings what a worker has learnt, and gets what it is to learn next.

    server (ActorHandle): Of a ``ServerActor``.
    worker (int): Its number.
    learner (StatelessWorker): Who learns there.
    memory (Optional[MappedArrays]): None if all goes through Ray.
    """

    def __init__(self, server: Any, worker: int, learner: Any, memory: Optional[MappedArrays]):
        import ray

        self.ray, self.server, self.worker, self.memory = ray, server, worker, memory
        self.dense = dense_slices(learner.stretches)
        if memory is None:
            self.values = aligned_zeros(len(learner.learner.weights))
            learner.use(self.values)
        else:
            learner.use(memory.arrays[f"values {worker}"], memory.arrays[f"vector {worker}"])

    def exchange(self, learnt: Optional[LearnedUnit]) -> Optional[Tuple[int, int]]:
        """Give what was learnt, and get what to learn next.

        RAISES (ServerDied): If there is no server.
        """
        sent, gradient = learnt, None if learnt is None else learnt.gradient
        if learnt is not None and gradient is not None:
            sent = learnt._replace(gradient=self._sent(gradient))
        try:
            answer = self.ray.get(self.server.call.remote("exchange", self.worker, sent))
        except self.ray.exceptions.RayActorError:
            raise ServerDied from None
        if isinstance(answer, Failure):
            raise (
                TrainingError(answer.text)
                if not answer.traceback
                else DialogError(f"{answer.text}\n{answer.traceback}")
            )
        if gradient is not None and self.memory is None:
            for now in self.dense:
                gradient.vector[now] = 0
        if answer is None:
            return None
        unit, version, values = answer
        if self.memory is None:
            self.values[:] = values
        return unit, version

    def _sent(self, gradient: Gradient) -> Optional[Gradient]:
        if self.memory is None:
            return Gradient([gradient.vector[now] for now in self.dense], gradient.tables)
        write_rows(self.memory.arrays, self.worker, gradient.tables)
        return None
