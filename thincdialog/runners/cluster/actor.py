"""A worker as an actor of Ray: its calls always return, even if they fail."""

import os
import socket
from contextlib import ExitStack
from typing import Any, Dict, List, Mapping, Optional, Sequence

from thinc.api import get_array_module, to_numpy
from threadpoolctl import threadpool_limits

from ...evaluation.predictions import Recorder
from ...formats.tolerance import tolerating
from ...loader.failure import Failure
from ...ops.alignment import aligned_zeros
from ...teachers import Teacher
from ...training.experiment import Experiment
from ..data_prints import data_prints
from ..mapped_arrays import MappedArrays, MappedMemory
from .communicator import Communicator, unique_id, why_no_nccl
from .device_plane import placed
from .evaluating import Share, evaluate_share
from .lone_plane import Aborted
from .nccl_plane import NcclPlane
from .parcel import opened, parcel
from .peer import Peer
from .recipe import Recipe, make_experiment, see_same_data
from .server_link import ServerDied, ServerLink
from .shared_plane import SharedPlane
from .slots import Slots
from .stateless_worker import StatelessWorker
from .store_plane import Mailbox, StorePlane


class WorkerActor:
    """A worker's process. ``call`` calls any other method; an exception is returned as a
    ``Failure``.
    """

    def __init__(self) -> None:
        self._era, self._mailbox, self._communicator = 0, Mailbox(), Communicator()
        # The last era in which other workers are known to be gone.
        self._lost = 0
        self.experiment: Optional[Experiment] = None
        self.teacher: Any = None
        self.peer: Any = None
        self._evaluated: Dict[str, Teacher] = {}
        self._n_parleys = 0  # Those of evaluations.
        threadpool_limits(1, user_api="blas")

    def call(self, name: str, *given: Any) -> Any:
        """Call a method of this actor, or of the peer.

        RETURNS (Any): The return value; a ``Failure`` if it fails, None if other workers gave up.
        """
        try:
            method = getattr(self, name, None) or getattr(self.peer, name)
            return method(*given)
        except Aborted:
            return None
        except BaseException as error:
            at_work = self.peer is not None and name in ("run", "work")
            failure = Failure.of(error, self.peer.walk.world if at_work else None)
            # Errors of ``make`` name the node already.
            node = "" if name == "make" else socket.gethostname()
            return failure._replace(cause=None, node=node)

    def make(self, recipe: Recipe) -> int:
        """Build the experiment and the teacher of the training data.

        RETURNS (int): The id of this process.
        """
        self.experiment, self.teacher = make_experiment(recipe, socket.gethostname())
        self._unlabelled = recipe.unlabelled
        return os.getpid()

    def _get_on(self) -> None:
        self._n_parleys += 1

    def progress(self) -> int:
        """Return the number of batches so far: while it changes, this worker does not hang."""
        return self._n_parleys + (0 if self.peer is None else self.peer.walk.n_before)

    def node(self) -> str:
        """Return the id of the node that this worker is on."""
        import ray

        return ray.get_runtime_context().get_node_id()

    def _make_peer(self) -> Experiment:
        """Become one of the workers that make steps together; RETURNS the experiment."""
        assert self.experiment is not None
        if self.peer is None:
            with self.experiment.working():
                self.peer = Peer(self.experiment, self.teacher)
        return self.experiment

    def join_shared(
        self, memory: MappedMemory, worker: int, slots: Slots, state: Mapping[str, Any]
    ) -> bool:
        """Work with other workers of the same machine.

        RETURNS (bool): Whether the memory can be opened from here.
        """
        try:
            mapped = MappedArrays.open(memory)
        except OSError:
            return False
        with self._make_peer().working():
            plane = SharedPlane(mapped, self.peer.stretches, slots, worker)
            self.peer.join(placed(plane, self.peer.learner.weights), state)
        return True

    def join_store(
        self, worker: int, slots: Slots, others: Sequence[Any], era: int, state: Mapping[str, Any],
        weights: Any, arrays: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Work with other workers on any machine.

        others (Sequence[ActorHandle]): All workers.
        era (int): Number of times that workers have joined: messages of other eras are dropped.
        weights, arrays: Their current values.
        """
        self._era, self._mailbox = era, Mailbox()
        calls = [other.give.options(num_returns=0) for other in others]

        def send(other: int, key: Any, message: Any) -> None:
            calls[other].remote(era, key, *parcel(message))

        with self._make_peer().working():
            stretches = self.peer.stretches
            plane = StorePlane(weights, stretches, slots, worker, send, self._mailbox)
            for name, array in arrays.items():
                plane.state[name][:] = array
            self.peer.join(placed(plane, self.peer.learner.weights), state)

    def why_no_nccl(self) -> str:
        """See the function."""
        return why_no_nccl()

    def unique_id(self) -> Any:
        """See the function."""
        return unique_id()

    def join_nccl(
        self, worker: int, slots: Slots, meeting: Any, era: int, state: Mapping[str, Any],
        weights: Any, arrays: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Work with other workers that have GPUs, too.

        meeting (Tuple[int, ...]): From ``unique_id``.
        RAISES (Aborted): If one of them is gone already.
        """
        experiment: Any = self._make_peer()
        self._era, self._communicator = era, Communicator()
        if era <= self._lost:
            raise Aborted
        with experiment.working():
            self._communicator.connect(slots.n_workers, meeting, worker)
            stretches = self.peer.stretches
            values: Any = aligned_zeros(len(weights), experiment.ops.xp)
            values.set(weights)
            plane = NcclPlane(self._communicator, values, stretches, slots, worker)
            for name, array in arrays.items():
                plane.state[name].set(array)
            self.peer.join(plane, state)

    def give(self, era: int, key: Any, *parts: Any) -> None:
        """Take a message from another worker."""
        if self._era == era:
            self._mailbox.put(key, opened(parts))

    def abandon(self, era: int) -> None:
        """Stop waiting for workers of an era, as some are gone; may come before this one joins."""
        self._lost = max(self._lost, era)
        if self._era == era:
            self._mailbox.abandon()
            self._communicator.abandon()

    def join_server(
        self, worker: int, server: Any, n_microbatches: int, memory: Optional[MappedMemory],
        origin: Mapping[str, Any], first: int,
    ) -> bool:  # fmt: skip
        """Work for a gradient server.

        server (ActorHandle): Handle of a ``ServerActor``.
        memory (Optional[MappedMemory]): Has a ``server_layout``; None if there is no shared memory.
        origin, first: Describe the epoch (see ``StatelessWorker``).
        RETURNS (bool): Whether the memory can be opened from here.
        """
        assert self.experiment is not None
        try:
            mapped = None if memory is None else MappedArrays.open(memory)
        except OSError:
            return False
        with self.experiment.working():
            if self.peer is None:
                self.peer = StatelessWorker(self.experiment, self.teacher, n_microbatches)
            self.link = ServerLink(server, worker, self.peer, mapped)
            self.peer.go_to(origin, first)
        return True

    def work(self) -> bool:
        """Train on units of work until the server has none.

        RETURNS (bool): Whether the server can still be reached.
        """
        try:
            self.peer.work(self.link.exchange)
        except ServerDied:
            return False
        return True

    def pieces(self) -> List[Any]:
        """Return each piece that this worker owns: its slice of the parameters, its values, and
        its arrays of the optimizer."""
        plane, owned = self.peer.plane, self.peer.owned
        kept = owned.kept()
        found = []
        for piece in owned.pieces:
            now = slice(piece.start, piece.stop)
            arrays = {name: to_numpy(plane.state[name][now]) for name in kept}
            found.append((now, to_numpy(plane.values[now]), arrays))
        return found

    def evaluate(
        self, split: str, worker: int, n_workers: int, data: Mapping[str, str],
        weights: Any, chosen: Mapping[str, Any], recorder: Optional[Recorder],
    ) -> Share:  # fmt: skip
        """Answer a share of the data to evaluate on.

        worker (int): Number of the share.
        data (Mapping[str, str]): Checksums of all of the data (``data_prints``).
        weights (Optional[Floats1d]): Weights to answer with; None: the current ones.
        chosen (Mapping[str, Any]): Attributes of the agent that were chosen on the dev data.
        recorder (Optional[Recorder]): Is filled with every reply.
        """
        experiment = self.experiment
        assert experiment is not None
        with ExitStack() as stack:
            stack.enter_context(experiment.working())
            stack.enter_context(tolerating(unlabelled=self._unlabelled))
            experiment.agent.__dict__.update(chosen)
            if split not in self._evaluated:
                teacher = experiment.evaluation_split(split)
                here = data_prints(teacher)
                see_same_data(teacher, here, data, split, socket.gethostname())
                self._evaluated[split] = teacher
            if weights is not None:
                asarray: Any = get_array_module(experiment.learner.weights).asarray
                stack.enter_context(experiment.learner.with_weights(asarray(weights)))
            teacher = self._evaluated[split]
            return evaluate_share(experiment, teacher, worker, n_workers, recorder, self._get_on)
