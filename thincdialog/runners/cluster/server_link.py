"""A worker's connection to a gradient server."""

from typing import Any, Optional, Sequence, Tuple

from ...errors import DialogError, TrainingError
from ...loader.failure import Failure
from ...models.gradient_sum import dense_slices
from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Segment
from ..mapped_arrays import Layout, MappedArrays
from .gradient import Gradient
from .gradient_server import LearnedUnit
from .shared_plane import shared_layout, write_rows
from .slots import Slots


class ServerDied(Exception):
    """Raised if the server cannot be reached; the run's process then starts another one."""


def server_layout(n: int, stretches: Sequence[Segment], n_workers: int) -> Layout:
    """Return the layout of the memory that a server shares with the workers of its machine: for
    each worker, its gradient and the weights that it trains with.

    n (int): Number of floats of all parameters.
    stretches (Sequence[Segment]): Segments that make up the parameters.
    n_workers (int): Number of workers.
    """
    layout = shared_layout(n, stretches, Slots(n_workers, n_workers))
    return layout + [(f"values {worker}", (n,), "<f4") for worker in range(n_workers)]


class ServerLink:
    """Send a worker's gradients to the server, and receive units of work.

    server (ActorHandle): Handle of a ``ServerActor``.
    worker (int): Number of the worker, from 0.
    learner (StatelessWorker): The worker.
    memory (Optional[MappedArrays]): Shared memory; None if all data goes through Ray.
    """

    def __init__(self, server: Any, worker: int, learner: Any, memory: Optional[MappedArrays]):
        import ray

        self.ray, self.server, self.worker, self.memory = ray, server, worker, memory
        self.dense = dense_slices(learner.stretches)
        if memory is None:
            self.values = aligned_zeros(len(learner.learner.weights))
            learner.vectors.use(self.values)
        else:
            arrays = memory.arrays
            learner.vectors.use(arrays[f"values {worker}"], arrays[f"vector {worker}"])

    def exchange(
        self, learned: Optional[LearnedUnit], at: Tuple[int, int]
    ) -> Optional[Tuple[int, int]]:
        """Send the result of a unit, and receive the next unit (see ``GradientServer.exchange``).

        RAISES (ServerDied): If the server cannot be reached.
        """
        sent, gradient = learned, None if learned is None else learned.gradient
        if learned is not None and gradient is not None:
            sent = learned._replace(gradient=self._sent(gradient))
        try:
            answer = self.ray.get(self.server.call.remote("exchange", self.worker, sent, at))
        except self.ray.exceptions.RayActorError:
            raise ServerDied from None
        if isinstance(answer, Failure):
            if answer.traceback:
                raise DialogError(f"{answer.text}\n{answer.traceback}")
            raise TrainingError(answer.text)
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
