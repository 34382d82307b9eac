"""A parameter server, which applies the gradients of workers one after the other."""

import math
from collections import Counter
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...errors import TrainingError
from ...optimizers.lazy_adam import LazyAdam
from ...optimizers.row_sparse import Segment
from ...optimizers.scored_schedules import restore_schedules
from ...optimizers.shared_state import settings_of
from ...optimizers.state import optimizer_state
from ...protocol import StepReport
from ...training.log_rows import STALENESS
from ..stale_steps import stale_settings
from .gradient import Gradient
from .ledger import End, Ledger
from .lone_plane import LonePlane
from .owned import Owned, pieces_of
from .peer import restore_pieces
from .slots import Slots

# Key in the counts of a step, for gradients that were dropped since the last step as too old.
DROPPED = "dropped_gradients"


class LearnedUnit(NamedTuple):
    """Hold a worker's result for one unit of work.

    unit (int): Number of the unit in the ``Ledger``.
    version (int): Version of the weights that the gradient was computed with.
    report (Optional[StepReport]): Report of the unit; None if the epoch has no such unit.
    gradient (Optional[Gradient]): The gradient; None if it is in shared memory.
    gpu_bytes (Optional[int]): Size of the memory pool of the worker's GPU, if it has one.
    state (Optional[Dict[str, Any]]): State of the worker's world, if there is no such unit.
    """

    unit: int
    version: int
    report: Optional[StepReport]
    gradient: Optional[Gradient]
    gpu_bytes: Optional[int] = None
    state: Optional[Dict[str, Any]] = None


class UnitReport(NamedTuple):
    """Hold the report of a unit of work that was done.

    worker (int): Number of the worker.
    unit (int): Number of the unit.
    report (StepReport): Report of the step; if it has no examples, no step was made.
    gpu_bytes (Optional[int]): See ``LearnedUnit``.
    """

    worker: int
    unit: int
    report: StepReport
    gpu_bytes: Optional[int] = None


class ServerReport(NamedTuple):
    """Hold the reports of a server since its last ``ServerReport``.

    made (List[UnitReport]): Units that were done, in the order of their steps.
    version (int): Number of steps so far.
    ends (List[End]): Ends of the epoch's shares (see ``Ledger``).
    is_over (bool): Whether the epoch is over.
    """

    made: List[UnitReport]
    version: int
    ends: List[End]
    is_over: bool


class GradientServer:
    """Hand out units of work, and make a step of the optimizer with each gradient that workers
    return. A gradient that is too old is dropped, and its unit is handed out again.

    stretches (Sequence[Segment]): Segments that make up the parameters.
    optimizer (Optimizer): A new optimizer, as in the config.
    ops (Ops): Ops for the host.
    values (Floats1d): Current values of all parameters, which are copied. The attribute holds the
        parameters after the steps so far.
    bound (int): Maximum age of a gradient, in versions of the weights.
    n_workers (int): Number of workers that return gradients.
    """

    def __init__(
        self,
        stretches: Sequence[Segment],
        optimizer: Any,
        ops: Any,
        values: Any,
        bound: int,
        n_workers: int = 1,
    ):
        self.n_workers = n_workers
        self.plane = LonePlane(values, stretches, Slots(1, 1))
        self.values, self.optimizer, self.bound = self.plane.values, optimizer, bound
        pieces = pieces_of(stretches, 0, 1)
        self.owned = Owned(pieces, optimizer, ops, self.plane.state)
        self.ledger = Ledger()
        self.version = self._limit = self._n_dropped = 0
        self._made: List[UnitReport] = []

    def restore(self, saved: Mapping[str, Any], owed: Collection[int] = ()) -> None:
        """Resume from a snapshot. Call this only once, because it requires a new optimizer.

        saved (Mapping[str, Any]): A result of ``snapshot``; ``values`` already has its weights.
        owed (Collection[int]): Units that were reported since then (see ``Ledger``).
        """
        for name, array in saved["arrays"].items():
            self.plane.state[name][:] = array
        restore_pieces(self.optimizer, self.owned.pieces, saved["state"], self.plane)
        self.ledger.restore(saved["ledger"], owed)
        self.version = self._limit = saved["version"]
        self._made, self._n_dropped = list(saved["untold"]), saved["n_dropped"]

    def restore_ledger(self, ledger: Mapping[str, Any]) -> None:
        """Restore only the ledger, if weights and optimizer are already in the right state."""
        self.ledger.restore(ledger)

    def start_epoch(self, epoch: int, n_shares: int = 1) -> Dict[str, Any]:
        """Begin an epoch.

        epoch (int): Number of the epoch, from 0.
        n_shares (int): Number of shares of the data.
        RETURNS (Dict[str, Any]): Where the epoch begins, as JSON values: its number, its first
            unit, and for each share the state of a world before the epoch; None if not known.
        """
        before = self.ledger.start_epoch(n_shares)
        return {"epoch": epoch, "first": self.ledger.first, "before": before}

    def end_at(self, version: float) -> None:
        """Make no steps after this version, except with units that are at workers or owed."""
        self._limit = int(min(version, 1 << 62))

    def exchange(
        self, worker: int, learned: Optional[LearnedUnit], at: Tuple[int, int] = (0, 1)
    ) -> Optional[Tuple[int, int]]:
        """Apply a worker's result, and hand out the next unit to the worker.

        worker (int): Number of the worker.
        learned (Optional[LearnedUnit]): The result of its last unit; None if it had no unit.
        at (Tuple[int, int]): See ``StatelessWorker``.
        RETURNS (Optional[Tuple[int, int]]): The next unit, and the current version of the weights;
            None if there is nothing to do now.
        RAISES (TrainingError): If a gradient is not finite.
        """
        if learned is not None and self.ledger.is_wanted(worker, learned.unit):
            self._take_in(worker, learned)
        is_full = self.version + self.ledger.n_out >= self._limit
        unit = self.ledger.hand_out(worker, is_full, at)
        return None if unit is None else (unit, self.version)

    def _take_in(self, worker: int, learned: LearnedUnit) -> None:
        if learned.report is None:
            self.ledger.past_end(worker, learned.state)
            return
        staleness = self.version - learned.version
        if staleness > self.bound:
            self._n_dropped += 1
            self.ledger.back(worker)
            return
        report = learned.report
        if report.examples:
            assert learned.gradient is not None
            report = self._apply(learned, learned.gradient, report, staleness)
        self._made.append(UnitReport(worker, learned.unit, report, learned.gpu_bytes))
        self.ledger.done(worker)

    def _apply(
        self, learned: LearnedUnit, gradient: Gradient, report: StepReport, staleness: int
    ) -> StepReport:
        scale = 1.0 / report.weight
        self.owned.add_up([gradient], self.plane.sums)
        norm = self.owned.norm(self.plane.sums, scale)
        if not math.isfinite(norm):
            raise TrainingError("The gradient is not finite; training stopped.")
        optimizer = self.optimizer
        settings: Dict[str, float] = self.settings(optimizer)
        before = {name: getattr(optimizer, name) for name in settings}
        _set(optimizer, settings)
        learn_rate = float(optimizer.learn_rate)
        self.owned.step(self.values, gradient.vector, scale, norm)
        _set(optimizer, before)
        optimizer.step_schedules()
        self.version += 1
        counts = Counter(report.counts)
        counts[f"{STALENESS}{staleness}"] += 1
        if self._n_dropped:
            counts[DROPPED] += self._n_dropped
            self._n_dropped = 0
        return report._replace(gradient_norm=norm, learn_rate=learn_rate, counts=dict(counts))

    def settings(self, optimizer: Any) -> Dict[str, float]:
        """Return the settings of the optimizer that are changed for steps with stale gradients."""
        if type(optimizer) is not LazyAdam:
            return {}
        settings = settings_of(optimizer)
        changed = stale_settings(settings, self.n_workers)
        return {name: value for name, value in changed.items() if value != settings[name]}

    def take(self) -> ServerReport:
        """Return the reports since the last call."""
        made, self._made = self._made, []
        return ServerReport(made, self.version, self.ledger.ends, self.ledger.is_over)

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """Take over the schedules of the run's optimizer (``schedule_states``), after evaluations
        have changed them."""
        restore_schedules(self.optimizer, states)

    def snapshot(self) -> Dict[str, Any]:
        """Return a copy of the whole state of a server, from which another server can resume.
        It includes the reports that ``take`` has not returned yet."""
        kept = self.owned.kept()
        return {
            "version": self.version,
            "untold": list(self._made),
            "n_dropped": self._n_dropped,
            "ledger": self.ledger.state(),
            "weights": self.values.copy(),
            "arrays": {name: self.plane.state[name].copy() for name in kept},
            "state": {**optimizer_state(self.optimizer)[0], "kept": kept},
        }


def _set(optimizer: Any, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        setattr(optimizer, name, value)
