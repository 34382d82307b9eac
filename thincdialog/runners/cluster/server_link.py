"""The way between a server of gradients and its workers."""

import os
from typing import Any, List, Optional, Sequence, Tuple

from ...config import build_block
from ...errors import DialogError, TrainingError
from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Part, Rows
from ..crew import Failure
from .gradient import Gradient
from .gradient_server import GradientServer, Learnt
from .mapped_arrays import Layout, MappedArrays
from .recipe import Recipe, make_experiment
from .shared_plane import shared_layout
from .slots import Slots


class ServerDied(Exception):
    """There is no server any more; the run's process starts another."""


def server_layout(n: int, stretches: Sequence[Part], n_workers: int) -> Layout:
    """What server and workers of one machine have in common: for each worker a gradient, and
    the weights that it learns with."""
    layout = shared_layout(n, stretches, Slots(n_workers, n_workers))
    return layout + [(f"values {worker}", (n,), "<f4") for worker in range(n_workers)]


def _dense(stretches: Sequence[Part]) -> List[slice]:
    return [slice(part.start, part.stop) for part in stretches if not part.width]


class ServerLink:
    """A worker's end.

    server (ActorHandle): Of a ``ServerActor``.
    worker (int): Its number.
    learner (StatelessWorker): Who learns there.
    memory (Optional[MappedArrays]): None if all goes through Ray.
    """

    def __init__(self, server: Any, worker: int, learner: Any, memory: Optional[MappedArrays]):
        import ray

        self.ray, self.server, self.worker, self.memory = ray, server, worker, memory
        self.dense = _dense(learner.stretches)
        if memory is None:
            self.values = aligned_zeros(len(learner.learner.weights))
            learner.use(self.values)
        else:
            learner.use(memory.arrays[f"values {worker}"], memory.arrays[f"vector {worker}"])

    def exchange(self, learnt: Optional[Learnt]) -> Optional[Tuple[int, int]]:
        """Give what was learnt, and get what to learn next.

        RAISES (ServerDied): If there is no server.
        """
        sent, gradient = learnt, None if learnt is None else learnt.gradient
        if learnt is not None and gradient is not None:
            sent = learnt._replace(gradient=self._sent(gradient))
        try:
            answer = self.ray.get(self.server.exchange.remote(self.worker, sent))
        except self.ray.exceptions.RayError:
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
        arrays, worker = self.memory.arrays, self.worker
        for table, (rows, values) in enumerate(gradient.tables):
            arrays[f"rows {worker} {table}"][: len(rows)] = rows
            arrays[f"d rows {worker} {table}"][: len(rows)] = values
            arrays[f"n rows {worker} {table}"][0] = len(rows)
        return None


class ServerActor:
    """The server's end: what Ray runs."""

    def __init__(self) -> None:
        self.memory: Optional[MappedArrays] = None

    def make(self, recipe: Recipe) -> Any:
        """Build what it works with.

        RETURNS (Any): The id of its process; or a ``Failure``.
        """
        try:
            self.experiment, _ = make_experiment(recipe, "of the server", with_data=False)
        except BaseException as error:
            return Failure.of(error)._replace(cause=None)
        return os.getpid()

    def begin(self, saved: Any, owed: List[int], bound: int, n_workers: int, memory: Any) -> Any:
        """Be a server.

        saved (Dict[str, Any]): From ``GradientServer.snapshot``.
        owed (List[int]): Units that were made since, and told.
        memory (Optional[Mapping]): Of the machine that all are on; None if there is none.
        RETURNS (Any): Whether the memory can be opened from here; or a ``Failure``.
        """
        try:
            experiment = self.experiment
            try:
                self.memory = None if memory is None else MappedArrays.open(memory)
            except OSError:
                return False
            parameters: Any = experiment.learner.parameters  # type: ignore[attr-defined]
            values = aligned_zeros(len(saved["weights"]))
            values[:] = saved["weights"]
            optimizer = build_block(experiment.checked, "training.optimizer")
            stretches = self.stretches = parameters.stretches
            ops = experiment.learner.model.ops
            self.server = GradientServer(stretches, optimizer, ops, values, bound, n_workers)
            self.server.restore(saved, owed)
            self._scratch = aligned_zeros(len(values))
        except BaseException as error:
            return Failure.of(error)._replace(cause=None)
        return True

    def call(self, name: str, *given: Any) -> Any:
        """A method of the server."""
        try:
            return getattr(self.server, name)(*given)
        except BaseException as error:
            return Failure.of(error)._replace(cause=None)

    def forget(self, worker: int) -> None:
        """A worker is gone: what it has, somebody else learns."""
        self.server.forget(worker)
        if self.memory is not None:
            self.memory.arrays[f"vector {worker}"].fill(0)

    def exchange(self, worker: int, learnt: Optional[Learnt]) -> Any:
        """See ``GradientServer.exchange``.

        RETURNS (Any): Unit, version, and the weights if they do not lie where the worker finds
            them; None; or a ``Failure``.
        """
        try:
            if learnt is not None and learnt.report is not None:
                learnt = learnt._replace(gradient=self._found(worker, learnt.gradient))
            given = self.server.exchange(worker, learnt)
            if learnt is not None and learnt.gradient is not None:
                # Those of a dropped gradient, too.
                for now in _dense(self.stretches):
                    learnt.gradient.vector[now] = 0
        except BaseException as error:
            return Failure.of(error)._replace(cause=None)
        if given is None:
            return None
        if self.memory is None:
            return (*given, self.server.values)
        self.memory.arrays[f"values {worker}"][:] = self.server.values
        return (*given, None)

    def _found(self, worker: int, sent: Optional[Gradient]) -> Gradient:
        """What a worker has learnt, where it may be changed."""
        if sent is not None:
            for now, values in zip(_dense(self.stretches), sent.vector):
                self._scratch[now] = values
            tables = [(rows.copy(), values.copy()) for rows, values in sent.tables]
            return Gradient(self._scratch, tables)
        assert self.memory is not None
        arrays, found = self.memory.arrays, []
        for table in range(sum(bool(part.width) for part in self.stretches)):
            now = slice(int(arrays[f"n rows {worker} {table}"][0]))
            rows: Rows = (
                arrays[f"rows {worker} {table}"][now],
                arrays[f"d rows {worker} {table}"][now],
            )
            found.append(rows)
        return Gradient(arrays[f"vector {worker}"], found)
