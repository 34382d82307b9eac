"""The Ray actor of a gradient server. Its calls return errors instead of raising them."""

import os
from typing import Any, List, Optional, Tuple

from ...config import build_block
from ...loader.failure import Failure
from ...models.gradient_sum import dense_slices
from ...ops.alignment import aligned_zeros
from ...training.experiment import Experiment
from ..mapped_arrays import MappedArrays
from .gradient import Gradient
from .gradient_server import GradientServer, LearnedUnit
from .recipe import Recipe, make_experiment
from .shared_plane import read_rows


class ServerActor:
    """Run a gradient server in a process of its own. ``call`` calls any other method, and returns
    an exception as a ``Failure``.
    """

    experiment: Experiment
    memory: Optional[MappedArrays]

    def make(self, recipe: Recipe) -> int:
        """Build the experiment.

        recipe (Recipe): The recipe of the run.
        RETURNS (int): The process id.
        """
        # The server is on the host, and needs no data.
        own = recipe._replace(data=None, gpu_id=-1)
        self.experiment, _ = make_experiment(own, "of the server")
        return os.getpid()

    def begin(self, saved: Any, owed: List[int], bound: int, n_workers: int, memory: Any) -> bool:
        """Start the server from a snapshot.

        saved (Dict[str, Any]): A result of ``GradientServer.snapshot``.
        owed (List[int]): Units that were reported since then.
        bound, n_workers: See ``GradientServer``.
        memory (Optional[MappedMemory]): Shared memory with a ``server_layout``; None if all data
            goes through Ray.
        RETURNS (bool): Whether the memory can be opened from here.
        """
        experiment = self.experiment
        try:
            self.memory = None if memory is None else MappedArrays.open(memory)
        except OSError:
            return False
        parameters: Any = experiment.learner.parameters  # type: ignore[attr-defined]
        optimizer = build_block(experiment.checked, "training.optimizer")
        stretches, ops = parameters.stretches, experiment.learner.model.ops
        self.dense = dense_slices(stretches)
        self.n_tables = len(stretches) - len(self.dense)
        weights = saved["weights"]
        self.server = GradientServer(stretches, optimizer, ops, weights, bound, n_workers)
        self.server.restore(saved, owed)
        self._scratch = aligned_zeros(len(weights))
        return True

    def call(self, name: str, *given: Any) -> Any:
        """Call a method of this actor, or of its ``GradientServer``.

        name (str): Name of the method.
        given (Any): Its arguments.
        RETURNS (Any): The return value; a ``Failure`` if the method fails.
        """
        try:
            method = getattr(self, name, None) or getattr(self.server, name)
            return method(*given)
        except BaseException as error:
            return Failure.of(error)._replace(cause=None)

    def exchange(self, worker: int, learned: Optional[LearnedUnit], at: Tuple[int, int]) -> Any:
        """Apply a worker's result, and hand out the next unit (see ``GradientServer.exchange``).

        RETURNS (Any): The unit, the version and the weights, which are None if they are in shared
            memory; or a single None if there is nothing to do now.
        """
        if learned is not None and learned.report is not None:
            learned = learned._replace(gradient=self._found(worker, learned.gradient))
        given = self.server.exchange(worker, learned, at)
        if learned is not None and learned.gradient is not None:
            # Set the gradient to zero, even if it was dropped.
            for now in self.dense:
                learned.gradient.vector[now] = 0
        if given is None:
            return None
        if self.memory is None:
            return (*given, self.server.values)
        self.memory.arrays[f"values {worker}"][:] = self.server.values
        return (*given, None)

    def _found(self, worker: int, sent: Optional[Gradient]) -> Gradient:
        """Return a worker's gradient in memory that may be changed."""
        if sent is not None:
            for now, values in zip(self.dense, sent.vector):
                self._scratch[now] = values
            tables = [(rows.copy(), values.copy()) for rows, values in sent.tables]
            return Gradient(self._scratch, tables)
        assert self.memory is not None
        arrays = self.memory.arrays
        return Gradient(arrays[f"vector {worker}"], read_rows(arrays, worker, self.n_tables))
