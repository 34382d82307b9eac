"""The Ray actor of a worker. Its calls return errors instead of raising them."""

import os
import socket
from contextlib import ExitStack
from typing import Any, Dict, List, Mapping, Optional, Sequence

from thinc.api import get_array_module
from threadpoolctl import threadpool_limits

from ...evaluation.predictions import Recorder
from ...formats.context import tolerating
from ...loader.failure import Failure
from ...teachers import Teacher
from ...training.experiment import Experiment
from ..data_prints import data_prints
from ..mapped_arrays import MappedArrays, MappedMemory
from .evaluating import Share, evaluate_share
from .lone_plane import Aborted
from .parcel import opened, parcel
from .peer import Peer
from .recipe import Recipe, make_experiment, see_same_data
from .server_link import ServerDied, ServerLink
from .shared_plane import SharedPlane
from .slots import Slots
from .stateless_worker import StatelessWorker
from .store_plane import Mailbox, StorePlane


class WorkerActor:
    """Run a worker in a process of its own. ``call`` calls any other method, and returns an
    exception as a ``Failure``.
    """

    experiment: Experiment
    teacher: Any

    def __init__(self) -> None:
        self._era, self._mailbox = 0, Mailbox()
        self.peer: Any = None
        self._evaluated: Dict[str, Teacher] = {}
        self._n_parleys = 0  # Parleys of evaluations.
        threadpool_limits(1, user_api="blas")

    def call(self, name: str, *given: Any) -> Any:
        """Call a method of this actor, or of its ``Peer`` or ``StatelessWorker``.

        name (str): Name of the method.
        given (Any): Its arguments.
        RETURNS (Any): The return value; a ``Failure`` if the method fails; None if the other
            workers have given up.
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

        recipe (Recipe): The recipe of the run.
        RETURNS (int): The process id.
        """
        self.experiment, self.teacher = make_experiment(recipe, socket.gethostname())
        self._unlabelled = recipe.unlabelled
        return os.getpid()

    def _get_on(self) -> None:
        self._n_parleys += 1

    def progress(self) -> int:
        """Return the number of batches so far. As long as it changes, this worker does not hang."""
        return self._n_parleys + (0 if self.peer is None else self.peer.walk.n_before)

    def node(self) -> str:
        """Return the id of the node that this worker is on."""
        import ray

        return ray.get_runtime_context().get_node_id()

    def _make_peer(self) -> Experiment:
        """Make the ``Peer`` of this worker, unless it exists, and return the experiment."""
        if self.peer is None:
            with self.experiment.working():
                self.peer = Peer(self.experiment, self.teacher)
        return self.experiment

    def join_shared(
        self, memory: MappedMemory, worker: int, slots: Slots, state: Mapping[str, Any]
    ) -> bool:
        """Join workers on the same machine, with a ``SharedPlane``.

        memory (MappedMemory): The shared memory; has a ``shared_layout``.
        worker (int): Number of this worker, from 0.
        slots (Slots): Assignment of microbatches to workers.
        state (Mapping[str, Any]): State of the optimizer, without arrays.
        RETURNS (bool): Whether the memory can be opened from here.
        """
        try:
            mapped = MappedArrays.open(memory)
        except OSError:
            return False
        with self._make_peer().working():
            plane = SharedPlane(mapped, self.peer.stretches, slots, worker)
            self.peer.join(plane, state)
        return True

    def join_store(
        self, worker: int, slots: Slots, era: int, state: Mapping[str, Any],
        others: Sequence[Any], weights: Any, arrays: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Join workers on any machine, with a ``StorePlane``.

        worker, slots, state: See ``join_shared``.
        era (int): Counts how often workers have joined. Messages of other eras are dropped.
        others (Sequence[ActorHandle]): All workers, in the order of their numbers.
        weights (Floats1d): Current values of all parameters.
        arrays (Mapping[str, Any]): Current arrays of the optimizer, by name.
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
            self.peer.join(plane, state)

    def give(self, era: int, key: Any, *parts: Any) -> None:
        """Put a message from another worker into the mailbox, unless its era is over."""
        if self._era == era:
            self._mailbox.put(key, opened(parts))

    def abandon(self, era: int) -> None:
        """Stop waiting for the workers of an era, because some are gone."""
        if self._era == era:
            self._mailbox.abandon()

    def join_server(
        self, worker: int, server: Any, n_microbatches: int, memory: Optional[MappedMemory],
        origin: Mapping[str, Any],
    ) -> bool:  # fmt: skip
        """Become a worker of a gradient server.

        worker (int): Number of this worker, from 0.
        server (ActorHandle): Handle of a ``ServerActor``.
        n_microbatches (int): Number of microbatches in a unit of work.
        memory (Optional[MappedMemory]): Shared memory with a ``server_layout``; None if all data
            goes through Ray.
        origin (Mapping[str, Any]): The current epoch (see ``StatelessWorker.go_to``).
        RETURNS (bool): Whether the memory can be opened from here.
        """
        try:
            mapped = None if memory is None else MappedArrays.open(memory)
        except OSError:
            return False
        with self.experiment.working():
            if self.peer is None:
                self.peer = StatelessWorker(self.experiment, self.teacher, n_microbatches)
            self.link = ServerLink(server, worker, self.peer, mapped)
            self.peer.go_to(origin)
        return True

    def work(self) -> bool:
        """Train on units of work until the server has no more.

        RETURNS (bool): Whether the server can still be reached.
        """
        try:
            self.peer.work(self.link.exchange)
        except ServerDied:
            return False
        return True

    def pieces(self) -> List[Any]:
        """Return, for each piece that this worker owns, its slice of the parameters, its values,
        and the optimizer's arrays for it."""
        plane, owned = self.peer.plane, self.peer.owned
        kept = owned.kept()
        found = []
        for piece in owned.pieces:
            now = slice(piece.start, piece.stop)
            arrays = {name: plane.state[name][now] for name in kept}
            found.append((now, plane.values[now], arrays))
        return found

    def evaluate(
        self, split: str, worker: int, n_workers: int, data: Mapping[str, str],
        weights: Any, chosen: Mapping[str, Any], recorder: Optional[Recorder],
    ) -> Share:  # fmt: skip
        """Evaluate the agent on a share of a split.

        split (str): Name of the split.
        worker (int): Number of the share, from 0.
        n_workers (int): Number of shares.
        data (Mapping[str, str]): Checksums of the whole split (``data_prints``).
        weights (Optional[Floats1d]): Weights to evaluate; None for the current ones.
        chosen (Mapping[str, Any]): Attributes of the agent that were chosen on the dev data.
        recorder (Optional[Recorder]): Records every reply.
        RETURNS (Share): The metrics, and the recorder.
        """
        experiment = self.experiment
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
