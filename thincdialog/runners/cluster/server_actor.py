"""A server of gradients as Ray runs it."""

import os
from typing import Any, List, Optional

from ...config import build_block
from ...loader.failure import Failure
from ...models.gradient_sum import dense_slices
from ...ops.alignment import aligned_zeros
from .gradient import Gradient
from .gradient_server import GradientServer, LearnedUnit
from .mapped_arrays import MappedArrays
from .recipe import Recipe, make_experiment
from .shared_plane import read_rows


class ServerActor:
    """A server's process. ``call`` calls any other method; what it raises comes back as a
    ``Failure``.
    """

    def __init__(self) -> None:
        self.memory: Optional[MappedArrays] = None

    def make(self, recipe: Recipe) -> int:
        """Build what it works with.

        RETURNS (int): Of its process.
        """
        self.experiment, _ = make_experiment(recipe, "of the server", with_data=False)
        return os.getpid()

    def begin(self, saved: Any, owed: List[int], bound: int, n_workers: int, memory: Any) -> bool:
        """Be a server.

        saved (Dict[str, Any]): From ``GradientServer.snapshot``.
        owed (List[int]): Units that were made since, and told.
        memory (Optional[Mapping]): Of the machine that all are on; None if there is none.
        RETURNS (bool): Whether the memory can be opened from here.
        """
        experiment = self.experiment
        try:
            self.memory = None if memory is None else MappedArrays.open(memory)
        except OSError:
            return False
        parameters: Any = experiment.learner.parameters  # type: ignore[attr-defined]
        values = aligned_zeros(len(saved["weights"]))
        values[:] = saved["weights"]
        optimizer = build_block(experiment.checked, "training.optimizer")
        stretches, ops = parameters.stretches, experiment.learner.model.ops
        self.dense = dense_slices(stretches)
        self.n_tables = len(stretches) - len(self.dense)
        self.server = GradientServer(stretches, optimizer, ops, values, bound, n_workers)
        self.server.restore(saved, owed)
        self._scratch = aligned_zeros(len(values))
        return True

    def call(self, name: str, *given: Any) -> Any:
        """A method of this one, or of the server."""
        try:
            method = getattr(self, name, None) or getattr(self.server, name)
            return method(*given)
        except BaseException as error:
            return Failure.of(error)._replace(cause=None)

    def forget(self, worker: int) -> None:
        """A worker is gone: what it has, somebody else learns."""
        self.server.forget(worker)
        if self.memory is not None:
            self.memory.arrays[f"vector {worker}"].fill(0)

    def exchange(self, worker: int, learnt: Optional[LearnedUnit]) -> Any:
        """See ``GradientServer.exchange``.

        RETURNS (Any): Unit, version, and the weights if they do not lie where the worker finds
            them; None if there is nothing to do for now.
        """
        if learnt is not None and learnt.report is not None:
            learnt = learnt._replace(gradient=self._found(worker, learnt.gradient))
        given = self.server.exchange(worker, learnt)
        if learnt is not None and learnt.gradient is not None:
            # Those of a dropped gradient, too.
            for now in self.dense:
                learnt.gradient.vector[now] = 0
        if given is None:
            return None
        if self.memory is None:
            return (*given, self.server.values)
        self.memory.arrays[f"values {worker}"][:] = self.server.values
        return (*given, None)

    def _found(self, worker: int, sent: Optional[Gradient]) -> Gradient:
        """What a worker has learnt, where it may be changed."""
        if sent is not None:
            for now, values in zip(self.dense, sent.vector):
                self._scratch[now] = values
            tables = [(rows.copy(), values.copy()) for rows, values in sent.tables]
            return Gradient(self._scratch, tables)
        assert self.memory is not None
        arrays = self.memory.arrays
        return Gradient(arrays[f"vector {worker}"], read_rows(arrays, worker, self.n_tables))
