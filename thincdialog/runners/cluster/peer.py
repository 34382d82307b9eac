"""A worker of synchronous training, which makes each step together with the other workers."""

import math
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ...agents.tally import not_finite
from ...config import build_block
from ...models.gradient_sum import GradientSum
from ...ops.device_memory import held_bytes
from ...ops.later import Later, settle
from ...optimizers.row_sparse import Rows
from ...optimizers.scored_schedules import restore_schedules
from ...optimizers.state import KEY, restore_optimizer
from ...protocol import Learner, StepReport
from ...teachers import Teacher
from ...training.experiment import Experiment
from .host_vectors import HostVectors
from .lone_plane import LonePlane
from .owned import Owned, pieces_of
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


class PeerSteps(NamedTuple):
    """Hold a worker's result of several steps.

    steps (List[StepPart]): Reports of the steps that changed parameters.
    is_done (bool): Whether the epoch is over.
    kept (List[str]): Names of the arrays that the optimizer has (see ``Owned.kept``).
    gpu_bytes (Optional[int]): Size of the memory pool of the worker's GPU, if it has one.
    """

    steps: List[StepPart]
    is_done: bool
    kept: List[str]
    gpu_bytes: Optional[int]


class Peer:
    """Train on a worker's microbatches of each step, and update the parameters that it owns.

    experiment (Experiment): The worker's own copy of the experiment, or the run's experiment if
        this is the only worker. Its agent has the weights.
    teacher (Teacher): Teacher of the training data.
    """

    def __init__(self, experiment: Experiment, teacher: Teacher):
        self.experiment = experiment
        self.learner: Learner = experiment.learner
        self.vectors = HostVectors(experiment)
        self.stretches = self.vectors.parameters.stretches
        world = experiment.make_world(teacher, self.learner)
        self.walk = Walk(world, self.learner, experiment.seed)

    def join(self, plane: LonePlane, optimizer_state: Mapping[str, Any]) -> None:
        """Join the other workers; this may be called again if workers change.

        plane (LonePlane): Plane that connects the workers, with the current parameters and arrays
            of the optimizer.
        optimizer_state (Mapping[str, Any]): State of the optimizer, without arrays
            (``state.optimizer_state``).
        """
        self.plane, self.slots = plane, plane.slots
        experiment = self.experiment
        optimizer = build_block(experiment.checked, "training.optimizer")
        pieces = pieces_of(self.stretches, plane.worker, self.slots.n_workers)
        restore_pieces(optimizer, pieces, optimizer_state, plane)
        self.owned = Owned(pieces, optimizer, self.vectors.ops, plane.state)
        self.optimizer = optimizer
        own = self.slots.own(plane.worker)
        # With one microbatch per slot, the gradient of this worker's last slot goes directly into
        # the slot's vector.
        self._bound = own[-1] if own and self.slots.size == 1 else None
        # The new vector is zero, while the old one may hold gradients of a step that was aborted.
        vector = None if self._bound is None else plane.vectors[self._bound]
        self.vectors.use(plane.values, vector)

    # --- steps ----------------------------------------------------------------------------

    def run(self, step: int, n_steps: int) -> PeerSteps:
        """Make steps with all other workers, at most until the epoch is over.

        step (int): Number of steps made so far.
        n_steps (int): Largest number of steps to make.
        RAISES (Aborted): If the other workers have given up.
        RAISES (TrainingError): If a loss or the gradient is not finite.
        """
        steps: List[StepPart] = []
        with self.experiment.working():
            for _ in range(n_steps):
                if self.walk.done():
                    break
                made = self._step(step + len(steps) + 1)
                if made is not None:
                    steps.append(made)
            is_done = self.walk.done()
        return PeerSteps(steps, is_done, self.owned.kept(), held_bytes(self.learner.weights))

    def _step(self, number: int) -> Optional[StepPart]:
        reports, ids, tables, n_microbatches = self._learn(number)
        plane = self.plane
        weight = sum(report.weight for report in reports)
        n_slots = self.slots.filled(n_microbatches)
        total, gradients = plane.hand_over(tables, weight, n_slots)
        if not total:
            plane.stepped([], {})
            return None
        self.owned.add_up(gradients, plane.sums)
        norm = self.owned.norm(plane.all_sums(), 1.0 / total)
        if not math.isfinite(norm):
            raise not_finite(f"gradient of step {number}", [id for each in ids for id in each()])
        reports = _settled(reports)
        learn_rate = float(self.optimizer.learn_rate)
        changed = self.owned.changed_rows()
        self.owned.step(plane.values, gradients[0].vector, 1.0 / total, norm)
        self.optimizer.step_schedules()
        plane.stepped(self.owned.pieces, changed)
        self.vectors.weights_changed()
        return StepPart(reports, norm, learn_rate)

    def _learn(self, step: int) -> Any:
        """Train on this worker's microbatches of a step, and put the gradients into its slots."""
        slots, worker = self.slots, self.plane.worker
        reports: List[StepReport] = []
        ids: List[Callable[[], Sequence[Optional[str]]]] = []
        tables: Dict[int, List[Rows]] = {}
        sums: Dict[int, GradientSum] = {}
        number = 0
        while number < slots.n_microbatches and not self.walk.done():
            slot = slots.of(number)
            if slots.worker(slot) != worker:
                self.walk.skip()
            else:
                report, of_report = self.walk.learn(step, number)
                reports.append(report)
                ids.append(of_report)
                gradient = self.vectors.take()
                if slot == self._bound:
                    tables[slot] = gradient.tables
                else:
                    added = sums.setdefault(slot, GradientSum(self.vectors.ops, self.stretches))
                    added.add(*gradient)
            number += 1
        for slot, added in sums.items():
            tables[slot] = added.take(self.plane.vectors[slot])
        return reports, ids, tables, number

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
    told = iter(settle(losses))
    return [
        report._replace(loss=next(told)) if isinstance(report.loss, Later) else report
        for report in reports
    ]


def restore_pieces(
    optimizer: Any, pieces: Sequence[Any], state: Mapping[str, Any], plane: LonePlane
) -> None:
    """Restore the state of an optimizer with one key for all parameters in an optimizer with a key
    for each piece.

    optimizer (Optimizer): A new optimizer.
    pieces (Sequence[Piece]): The pieces that the worker owns.
    state (Mapping[str, Any]): State without arrays (``RayRunner.optimizer_state``).
    plane (LonePlane): Plane with the arrays.
    """
    arrays: Dict[str, Any] = {}
    names: List[Any] = []
    for piece in pieces:
        for name in state["kept"]:
            file = f"{name}-{piece.key[0]}"
            names.append([name, list(piece.key), file])
            arrays[file] = plane.state[name][piece.start : piece.stop]
    n_updates = {tuple(key): n for key, n in state["nr_update"]}.get(KEY, 0)
    known = {
        "settings": state["settings"],
        "schedules": state["schedules"],
        "nr_update": [[list(piece.key), n_updates] for piece in pieces] or [[list(KEY), n_updates]],
        "last_seen": [],
        "arrays": names,
    }
    restore_optimizer(optimizer, plane.values, known, arrays)
