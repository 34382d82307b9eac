"""A worker of synchronous training, which makes each step together with the other workers."""

import math
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

import numpy

from ...agents.tally import not_finite
from ...config import build_block
from ...models.gradient_sum import GradientSum
from ...ops.device_memory import held_bytes
from ...ops.later import Later, settle
from ...optimizers.row_sparse import Segment
from ...optimizers.scored_schedules import restore_schedules
from ...protocol import Learner, StepReport
from ...teachers import Teacher
from ...training.experiment import Experiment
from ..shared_arrays import Arrays, Layout
from .exchange import (
    SUMS,
    VALUES,
    WEIGHTS,
    Barrier,
    clear,
    cut,
    gradients_layout,
    meeting_layout,
    paste,
    read,
    state_layout,
    write_rows,
)  # fmt: skip
from .host_vectors import HostVectors
from .shard import Shard, pieces_of
from .slots import Slots
from .walk import Walk


class StepPart(NamedTuple):
    """Hold a worker's part of the report of a step.

    reports (List[StepReport]): Reports of the worker's microbatches, in their order.
    norm (float): Norm of the mean gradient of the whole step, before clipping.
    learn_rate (float): Learning rate of the step.
    """

    reports: List[StepReport]
    norm: float
    learn_rate: float


class SyncSteps(NamedTuple):
    """Hold a worker's result of several steps.

    steps (List[StepPart]): Reports of the steps that changed parameters.
    is_done (bool): Whether the epoch is over.
    kept (List[str]): Names of the arrays that the optimizer has (see ``Shard.kept``).
    gpu_bytes (Optional[int]): Size of the memory pool of the worker's GPU, if it has one.
    """

    steps: List[StepPart]
    is_done: bool
    kept: List[str]
    gpu_bytes: Optional[int]


def sync_layout(segments: Sequence[Segment], slots: Slots) -> Layout:
    """Return the layout of the arrays of synchronous workers, which they share on one machine: the
    parameters, the optimizer's arrays, and the gradient of each slot.

    segments (Sequence[Segment]): Segments that make up the parameters.
    slots (Slots): Assignment of microbatches to workers.
    """
    gradients = gradients_layout(segments, slots.n_slots)
    return [*state_layout(segments), *gradients, *meeting_layout(slots.n_workers)]


class SyncWorker:
    """Train on a worker's microbatches of each step, and update the parameters that it owns. All
    workers make the same three moves in a step:

        train on the own microbatches    ->  gradients of the own slots
        sum the gradients of all slots   ->  squares of the own blocks
        make the optimizer's step        ->  new values of the own parameters

    Workers that share memory wait for each other after each move (``run``). Otherwise, the results
    of each move are sent to the other workers (``learn``, ``add_up``, ``step``, ``take``).

    experiment (Experiment): The worker's own copy of the experiment, or the run's experiment if
        this is the only worker. Its agent has the weights.
    teacher (Teacher): Teacher of the training data.
    """

    def __init__(self, experiment: Experiment, teacher: Teacher):
        self.experiment = experiment
        self.learner: Learner = experiment.learner
        self.vectors = HostVectors(experiment)
        self.segments = self.vectors.parameters.segments
        world = experiment.make_world(teacher, self.learner)
        self.walk = Walk(world, self.learner, experiment.seed)

    def connect(
        self, number: int, slots: Slots, arrays: Arrays, optimizer_state: Mapping[str, Any]
    ) -> None:
        """Join the other workers; this may be called again if workers change.

        number (int): Number of this worker, from 0.
        slots (Slots): Assignment of microbatches to workers.
        arrays (Arrays): Arrays with a ``sync_layout``, which hold the current parameters and arrays
            of the optimizer.
        optimizer_state (Mapping[str, Any]): State of the optimizer, without arrays
            (``RayRunner.optimizer_state``).
        """
        self.number, self.slots, self.arrays = number, slots, arrays
        self.optimizer = build_block(self.experiment.checked, "training.optimizer")
        # The pieces of all workers.
        self.pieces = [pieces_of(self.segments, n, slots.n_workers) for n in range(slots.n_workers)]
        self.shard = Shard(self.pieces[number], self.optimizer, self.vectors.ops, arrays)
        self.shard.restore(optimizer_state, arrays[VALUES])
        self.barrier = Barrier(arrays, number)
        own = slots.own(number)
        # With one microbatch per slot, the gradient of this worker's last slot goes directly into
        # the slot's vector.
        self._bound = own[-1] if own and slots.size == 1 else None
        vector = None if self._bound is None else arrays[f"vector {self._bound}"]
        self.vectors.use(arrays[VALUES], vector)

    # --- steps of workers that share memory -------------------------------------------------

    def run(self, step: int, n_steps: int) -> SyncSteps:
        """Make steps with all other workers, at most until the epoch is over.

        step (int): Number of steps made so far.
        n_steps (int): Largest number of steps to make.
        RAISES (Aborted): If another worker is gone.
        RAISES (TrainingError): If a loss or the gradient is not finite.
        """
        steps: List[StepPart] = []
        with self.experiment.working():
            for _ in range(n_steps):
                if self.walk.done():
                    break
                self._learn(step + len(steps) + 1)
                self.barrier.wait()
                self._add_up()
                self.barrier.wait()
                part = self._step(self.arrays[SUMS])
                self.barrier.wait()
                if part is not None:
                    self.vectors.weights_changed()
                    steps.append(part)
            return self._result(steps)

    def _result(self, steps: List[StepPart]) -> SyncSteps:
        held = held_bytes(self.learner.weights)
        return SyncSteps(steps, self.walk.done(), self.shard.kept(), held)

    # --- a step of workers that send each other their results -------------------------------

    def learn(self, step: int) -> List[Any]:
        """Train on this worker's microbatches of a step.

        step (int): Number of the step, from 1.
        RETURNS (List[Any]): An argument of ``add_up`` for each worker.
        """
        with self.experiment.working():
            self._learn(step)
        weight = int(self.arrays[WEIGHTS][self.number, 0])
        parts: List[Dict[int, Any]] = [{} for _ in self.pieces]
        for other, pieces in enumerate(self.pieces):
            if other != self.number:
                parts[other] = {slot: cut(read(self.arrays, slot), pieces) for slot in self._filled}
        return [(weight, part) for part in parts]

    def add_up(self, *learned: Any) -> Any:
        """Sum the gradients of all workers.

        learned (Tuple[int, Dict[int, Any]]): Of each worker, a result of ``learn``.
        RETURNS (Any): An argument of ``step``.
        """
        others = [pieces for other, pieces in enumerate(self.pieces) if other != self.number]
        for slot in self._filled:
            for pieces in others:
                clear(read(self.arrays, slot), pieces)
        for other, (weight, parts) in enumerate(learned):
            self.arrays[WEIGHTS][other, 0] = weight
            for slot, sent in parts.items():
                paste(self.arrays, slot, self.shard.pieces, sent)
        with self.experiment.working():
            self._add_up()
        return self.arrays[SUMS]

    def step(self, *sums: Any) -> Any:
        """Make the optimizer's step for this worker's pieces.

        sums (Array1d): Of each worker, a result of ``add_up``.
        RETURNS (Any): An argument of ``take``.
        """
        rows = self.shard.changed_rows()
        with self.experiment.working():
            # Each worker has the sums of its own blocks, and zeros for all other blocks.
            self._part = self._step(numpy.sum(sums, axis=0))
        changed: List[Any] = []
        for piece in self.shard.pieces if self._part else ():
            view = self.arrays[VALUES][piece.start : piece.stop]
            if piece.width and piece.table in rows:
                own = rows[piece.table]
                changed.append((own, view.reshape(-1, piece.width)[own]))
            else:
                changed.append((slice(None), view.reshape(-1, piece.width or 1)))
        return changed

    def take(self, *changed: Any) -> SyncSteps:
        """Take over the changed parameters of all workers.

        changed (List[Any]): Of each worker, a result of ``step``.
        """
        for other, (pieces, parts) in enumerate(zip(self.pieces, changed)):
            for piece, (rows, values) in zip(pieces, parts if other != self.number else ()):
                view = self.arrays[VALUES][piece.start : piece.stop]
                view.reshape(-1, piece.width or 1)[rows] = values
        with self.experiment.working():
            self.vectors.weights_changed()
            return self._result([] if self._part is None else [self._part])

    def owned(self) -> List[Any]:
        """Return, for each piece that this worker owns, its slice of the parameters, its values,
        and the optimizer's arrays for it."""
        names = [VALUES, *self.shard.kept()]
        slices = [slice(piece.start, piece.stop) for piece in self.shard.pieces]
        return [(now, {name: self.arrays[name][now] for name in names}) for now in slices]

    # --- moves ----------------------------------------------------------------------------

    def _learn(self, step: int) -> None:
        """Train on this worker's microbatches of a step, and put the gradients into its slots."""
        slots = self.slots
        self._number_of_step = step
        self._reports: List[StepReport] = []
        self._ids: List[Callable[[], Sequence[Optional[str]]]] = []
        self._filled: List[int] = []
        sums: Dict[int, GradientSum] = {}
        number = 0
        while number < slots.n_microbatches and not self.walk.done():
            slot = slots.of(number)
            if slots.worker(slot) != self.number:
                self.walk.skip()
            else:
                report, ids = self.walk.learn(step, number)
                self._reports.append(report)
                self._ids.append(ids)
                gradient = self.vectors.take()
                if slot == self._bound:
                    self._filled.append(slot)
                    write_rows(self.arrays, slot, gradient.tables)
                else:
                    added = sums.setdefault(slot, GradientSum(self.vectors.ops, self.segments))
                    added.add(*gradient)
            number += 1
        for slot, added in sums.items():
            self._filled.append(slot)
            write_rows(self.arrays, slot, added.take(self.arrays[f"vector {slot}"]))
        self._n_slots = slots.filled(number)
        self.arrays[WEIGHTS][self.number, 0] = sum(report.weight for report in self._reports)

    def _add_up(self) -> None:
        """Sum the gradients of all slots, unless no microbatch had an example."""
        self._total = int(self.arrays[WEIGHTS][:, 0].sum())
        if self._total:
            gradients = [read(self.arrays, slot) for slot in range(self._n_slots)]
            self._summed = gradients[0].vector
            self.shard.add_up(gradients, self.arrays[SUMS])

    def _step(self, sums: Any) -> Optional[StepPart]:
        """Make the optimizer's step for this worker's pieces, unless no microbatch had an example.

        sums (Array1d): Sums of all blocks.
        """
        if not self._total:
            return None
        scale = 1.0 / self._total
        norm = self.shard.norm(sums, scale)
        if not math.isfinite(norm):
            ids = [id for each in self._ids for id in each()]
            raise not_finite(f"gradient of step {self._number_of_step}", ids)
        reports = _settled(self._reports)
        learn_rate = float(self.optimizer.learn_rate)
        self.shard.step(self.arrays[VALUES], self._summed, scale, norm)
        self.optimizer.step_schedules()
        return StepPart(reports, norm, learn_rate)

    # --- epochs ---------------------------------------------------------------------------

    def start_epoch(self, epoch: int) -> bool:
        """Begin an epoch.

        epoch (int): Number of the epoch, from 0.
        RETURNS (bool): Whether the epoch is over at once.
        """
        self.walk.start_epoch(epoch)
        return self.walk.done()

    def go_to(self, place: Mapping[str, Any]) -> bool:
        """Go to a position in the data.

        place (Mapping[str, Any]): A result of ``place`` of any worker.
        RETURNS (bool): Whether the epoch is over there.
        """
        self.walk.go_to(place)
        return self.walk.done()

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """Take over the schedules of the run's optimizer (``schedule_states``), after evaluations
        have changed them."""
        restore_schedules(self.optimizer, states)

    def place(self) -> Dict[str, Any]:
        """Return the position in the data, for ``go_to``."""
        return self.walk.place()


def _settled(reports: Sequence[StepReport]) -> List[StepReport]:
    """Return the reports with the values of losses that are still on a device.

    RAISES (TrainingError): If a loss is not finite.
    """
    losses = [report.loss for report in reports if isinstance(report.loss, Later)]
    numbers = iter(settle(losses))
    return [
        report._replace(loss=next(numbers)) if isinstance(report.loss, Later) else report
        for report in reports
    ]
