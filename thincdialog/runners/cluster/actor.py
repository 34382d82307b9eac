"""The Ray actor of a worker or a server. Its calls return errors instead of raising them."""

import os
import socket
from contextlib import ExitStack
from typing import Any, Dict, Mapping, Optional, Tuple

from thinc.api import get_array_module
from threadpoolctl import threadpool_limits

from ...config import build_block
from ...errors import DialogError, TrainingError
from ...evaluation.evaluate_agent import answer_all, evaluate_by
from ...evaluation.predictions import Recorder
from ...formats.context import tolerating
from ...loader.failure import Failure
from ...metrics import Metric
from ...teachers import Teacher
from ...training.experiment import Experiment
from ..data_prints import data_prints
from ..recipe import Recipe, check_same_data, make_experiment
from ..shared_arrays import Arrays, SharedMemory, open_arrays, private_arrays
from .async_worker import AsyncWorker
from .exchange import Aborted, clear, cut, fill, read
from .gradient_server import GradientServer, async_layout
from .shard import pieces_of
from .slots import Slots
from .sync_worker import SyncWorker, sync_layout

# Result of an evaluation: the metrics of each task, and the recorder with the replies.
Share = Tuple[Dict[str, Dict[str, Metric]], Optional[Recorder]]


class ServerDied(Exception):
    """Raised if the server cannot be reached; the run's process then starts another one."""


class WorkerActor:
    """Run a worker, or a server, in a process of its own. ``call`` calls any other method, and
    returns an exception as a ``Failure``.

    part (Union[SyncWorker, AsyncWorker, GradientServer]): The worker or server, once it is
        connected.
    """

    experiment: Experiment
    teacher: Any

    def __init__(self) -> None:
        self.part: Any = None
        self.shared: Optional[Arrays] = None
        self._evaluated: Dict[str, Teacher] = {}
        self._n_parleys = 0  # Parleys of evaluations.
        threadpool_limits(1, user_api="blas")

    def call(self, name: str, *given: Any, n_returns: int = 1) -> Any:
        """Call a method of this actor or of its ``part``.

        name (str): Name of the method.
        given (Any): Its arguments. If another call, whose result is an argument, has failed, this
            call fails in the same way.
        n_returns (int): Number of values in the return value.
        RETURNS (Any): The return value; a ``Failure`` if the method fails, as each of the values;
            None if the other workers have given up.
        """
        for failure in (each for each in given if isinstance(each, Failure)):
            return failure
        try:
            method = getattr(self, name, None) or getattr(self.part, name)
            return method(*given)
        except Aborted:
            return None
        except BaseException as error:
            at_work = name in ("run", "learn", "work") and self.part is not None
            failure = Failure.of(error, self.part.walk.world if at_work else None)
            # Errors of ``make`` name the node already.
            node = "" if name == "make" else socket.gethostname()
            failure = failure._replace(cause=None, node=node)
            return failure if n_returns == 1 else [failure] * n_returns

    def make(self, recipe: Recipe) -> int:
        """Build the experiment and the teacher of the training data.

        recipe (Recipe): The recipe of the run.
        RETURNS (int): The process id.
        """
        self.experiment, self.teacher = make_experiment(recipe, socket.gethostname())
        self._unlabelled = recipe.unlabelled
        return os.getpid()

    def progress(self) -> int:
        """Return the number of batches so far. As long as it changes, this worker does not hang."""
        return self._n_parleys + (0 if self.part is None else self.part.walk.n_before)

    def node(self) -> str:
        """Return the id of the node that this worker is on."""
        import ray

        return ray.get_runtime_context().get_node_id()

    def open(self, memory: Optional[SharedMemory]) -> bool:
        """Share memory with other processes from now on, or (None) send them all data, and return
        whether the memory can be opened from here."""
        try:
            self.shared = None if memory is None else open_arrays(memory)
        except OSError:
            return False
        return True

    def connect_sync(self, number: int, slots: Slots, snapshot: Mapping[str, Any]) -> None:
        """Make the steps of synchronous training together with other workers.

        number (int): Number of this worker, from 0.
        slots (Slots): Assignment of microbatches to workers.
        snapshot (Mapping[str, Any]): State to begin with (``RayRunner.snapshot``). Only its
            "state" is needed if memory is shared, which has the arrays already.
        """
        with self.experiment.working():
            self.part = self.part or SyncWorker(self.experiment, self.teacher)
            arrays = self.shared
            if arrays is None:
                arrays = private_arrays(sync_layout(self.part.segments, slots))
                fill(arrays, snapshot)
            self.part.connect(number, slots, arrays, snapshot["state"])

    def connect_async(
        self, number: int, n_workers: int, server: Any, n_microbatches: int, origin: Any
    ) -> None:
        """Become a worker of a gradient server.

        number (int): Number of this worker, from 0.
        n_workers (int): Number of workers.
        server (ActorHandle): Actor of the server.
        n_microbatches (int): Number of microbatches in a unit of work.
        origin (Mapping[str, Any]): The current epoch (see ``AsyncWorker.go_to``).
        """
        import ray

        with self.experiment.working():
            given = (self.experiment, self.teacher, n_microbatches)
            worker = self.part = self.part or AsyncWorker(*given)
        is_sent = self.shared is None
        arrays = self.shared or private_arrays(async_layout(worker.segments, n_workers))
        pieces = pieces_of(worker.segments, 0, 1)

        def exchange(number: int, learned: Any, at: Any) -> Any:
            sent = None
            if is_sent and learned is not None and learned.report is not None:
                gradient = read(arrays, number)
                sent = ray.put(cut(gradient, pieces))  # A copy.
                clear(gradient, pieces)
            try:
                answer = ray.get(server.call.remote("exchange", number, learned, at, sent))
            except ray.exceptions.RayActorError:
                raise ServerDied from None
            if isinstance(answer, Failure):
                if answer.traceback:
                    raise DialogError(f"{answer.text}\n{answer.traceback}")
                raise TrainingError(answer.text)
            if answer is not None and is_sent:
                *answer, arrays[f"values {number}"][:] = answer
            return answer

        with self.experiment.working():
            worker.connect(number, arrays, exchange)
        worker.go_to(origin)

    def serve(self, n_workers: int, bound: int, snapshot: Mapping[str, Any]) -> None:
        """Become a gradient server.

        n_workers, bound: See ``GradientServer``.
        snapshot (Mapping[str, Any]): State to begin with (``GradientServer.snapshot``).
        """
        learner: Any = self.experiment.learner
        segments, ops = learner.parameters.segments, learner.model.ops
        arrays = self.shared or private_arrays(async_layout(segments, n_workers))
        optimizer = build_block(self.experiment.checked, "training.optimizer")
        self.part = GradientServer(segments, optimizer, ops, arrays, bound, n_workers)
        self.part.restore(snapshot)

    def exchange(self, *given: Any) -> Any:
        """Exchange a gradient for a unit of work (see ``GradientServer.exchange``).

        RETURNS (Any): The unit and the version, and the weights if memory is not shared; or None.
        """
        answer = self.part.exchange(*given)
        return answer and (answer if self.shared else (*answer, self.part.values))

    def work(self) -> bool:
        """Train on units of work until the server has no more.

        RETURNS (bool): Whether the server can still be reached.
        """
        try:
            self.part.work()
        except ServerDied:
            return False
        return True

    def evaluate(
        self, split: str, worker: int, n_workers: int, data: Mapping[str, str],
        weights: Any, chosen: Mapping[str, Any], recorder: Optional[Recorder],
    ) -> Share:  # fmt: skip
        """Evaluate the agent on a share of a split.

        split (str): Name of the split.
        worker (int): Number of the share, from 0.
        n_workers (int): Number of shares.
        data (Mapping[str, str]): Checksums of the whole split (``data_prints``).
        weights (Optional[Floats1d]): Weights to evaluate; None if the agent has none.
        chosen (Mapping[str, Any]): Attributes of the agent that were chosen on the dev data.
        recorder (Optional[Recorder]): Records every reply.
        RETURNS (Share): The metrics of each task, and the recorder with the replies.
        """
        experiment = self.experiment
        with ExitStack() as stack:
            stack.enter_context(experiment.working())
            stack.enter_context(tolerating(unlabelled=self._unlabelled))
            experiment.agent.__dict__.update(chosen)
            if split not in self._evaluated:
                whole = experiment.evaluation_split(split)
                here = data_prints(whole)
                check_same_data(whole, here, data, split, socket.gethostname())
                self._evaluated[split] = whole
            if weights is not None:
                asarray: Any = get_array_module(experiment.learner.weights).asarray
                stack.enter_context(experiment.learner.with_weights(asarray(weights)))
            reports: Dict[str, Dict[str, Metric]] = {}

            def measure(name: str, task: Teacher) -> Dict[str, Metric]:
                share = task.share_of(worker, n_workers)
                with experiment.make_evaluation_world(share, experiment.agent) as world:
                    answer_all(world, name, recorder, self._parleyed)
                    reports[name] = dict(world.report())
                return reports[name]

            evaluate_by(measure, experiment.agent, self._evaluated[split])
            return reports, recorder

    def _parleyed(self) -> None:
        self._n_parleys += 1
