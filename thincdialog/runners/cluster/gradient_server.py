"""The weights, and whoever changes them by gradients that come one after the other."""

import math
from collections import Counter
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy
from thinc.api import get_array_module, to_numpy
from thinc.util import is_numpy_array

from ...errors import TrainingError
from ...optimizers.lazy_adam import LazyAdam
from ...optimizers.row_sparse import Segment
from ...optimizers.scored_schedules import restore_schedules
from ...optimizers.shared_state import settings_of
from ...optimizers.state import ARRAYS, optimizer_state
from ...protocol import StepReport
from ...training.log_rows import STALENESS
from ..stale_steps import stale_settings
from .gradient import Gradient
from .ledger import Ledger
from .lone_plane import LonePlane
from .owned import n_blocks_of, pieces_of
from .owned_on_device import make_owned
from .peer import restore_pieces
from .slots import Slots

# In the counts of a step: gradients before it that were too old.
DROPPED = "dropped_gradients"


class LearnedUnit(NamedTuple):
    """What a worker brings.

    unit (int): Of the ``Ledger``.
    version (int): Of the weights that it learnt with.
    report (Optional[StepReport]): None if the epoch has no such unit.
    gradient (Optional[Gradient]): None if it lies where the server finds it.
    gpu_bytes (Optional[int]): What the worker's GPU holds, if it has one.
    """

    unit: int
    version: int
    report: Optional[StepReport]
    gradient: Optional[Gradient]
    gpu_bytes: Optional[int] = None


class UnitReport(NamedTuple):
    """What came of a unit.

    report (StepReport): Of its step; without examples there was none.
    gpu_bytes (Optional[int]): As of ``LearnedUnit``.
    """

    worker: int
    unit: int
    report: StepReport
    gpu_bytes: Optional[int] = None


class ServerReport(NamedTuple):
    """What has come of units since the last time.

    made (List[UnitReport]): In the order of steps.
    version (int): Steps made so far.
    end (Optional[int]): Of the units of the epoch, if it is known.
    is_over (bool): Whether the epoch is.
    """

    made: List[UnitReport]
    version: int
    end: Optional[int]
    is_over: bool


class GradientServer:
    """Hands out units of work, and makes a step of the optimizer with what comes back. A
    gradient that is too old is dropped, and its unit handed out anew.

    stretches (Sequence[Segment]): Of the parameters.
    optimizer (Optimizer): New, as of the config.
    ops (Ops): Of the model.
    values (Floats1d): All parameters; changed in place.
    bound (int): Versions that a gradient may be old.
    n_workers (int): That bring gradients.
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
        self.values, self.optimizer, self.bound = values, optimizer, bound
        pieces = pieces_of(stretches, 0, 1)
        self.owned = make_owned(pieces, optimizer, ops, self.plane.state)
        self.ledger = Ledger()
        self._sums = numpy.zeros(n_blocks_of(stretches))
        self.version = self._limit = self._n_dropped = 0
        self._made: List[UnitReport] = []

    def restore(self, saved: Mapping[str, Any], owed: Collection[int] = ()) -> None:
        """Go on from somewhere; once, as the optimizer is to be new.

        saved (Mapping[str, Any]): From ``snapshot``; the weights are there.
        owed (Collection[int]): Units that were made since, and told: see ``Ledger``.
        """
        asarray: Any = get_array_module(self.values).asarray
        for name, array in saved["arrays"].items():
            self.plane.state[name][:] = asarray(array)
        restore_pieces(self.optimizer, self.owned.pieces, saved["state"], self.plane)
        self.ledger.restore(saved["ledger"], owed)
        self.version = self._limit = saved["version"]
        self._made = list(saved["untold"])

    def restore_ledger(self, ledger: Mapping[str, Any]) -> None:
        """Go on with these units: the rest is where it was already."""
        self.ledger.restore(ledger)

    def start_epoch(self) -> int:
        """RETURNS (int): The first unit."""
        self.ledger.start_epoch()
        return self.ledger.first

    def end_at(self, version: float) -> None:
        """Make no more steps than up to there, but for those that are at workers or owed."""
        self._limit = int(min(version, 1 << 62))

    def exchange(self, worker: int, learnt: Optional[LearnedUnit]) -> Optional[Tuple[int, int]]:
        """Take in what a worker brings, and give it more to do.

        RETURNS (Optional[Tuple[int, int]]): A unit, and the version of the weights as they
            are; None if there is nothing to do for now.
        RAISES (TrainingError): If a gradient is not finite.
        """
        if learnt is not None and self.ledger.is_wanted(worker, learnt.unit):
            self._take_in(worker, learnt)
        is_full = self.version + self.ledger.n_out >= self._limit
        unit = self.ledger.hand_out(worker, is_full)
        return None if unit is None else (unit, self.version)

    def _take_in(self, worker: int, learnt: LearnedUnit) -> None:
        if learnt.report is None:
            self.ledger.past_end(worker)
            return
        staleness = self.version - learnt.version
        if staleness > self.bound:
            self._n_dropped += 1
            self.ledger.back(worker)
            return
        report = learnt.report
        if report.examples:
            assert learnt.gradient is not None
            report = self._apply(learnt, learnt.gradient, report, staleness)
        self._made.append(UnitReport(worker, learnt.unit, report, learnt.gpu_bytes))
        self.ledger.done(worker)

    def _apply(
        self, learnt: LearnedUnit, gradient: Gradient, report: StepReport, staleness: int
    ) -> StepReport:
        scale = 1.0 / report.weight
        self.owned.add_up([gradient], self._sums)
        norm = self.owned.norm(self._sums, scale)
        if not math.isfinite(norm):
            raise TrainingError("The gradient is not finite; training stopped.")
        optimizer = self.optimizer
        settings: Dict[str, float] = self.settings(optimizer)
        before = {name: getattr(optimizer, name) for name in settings}
        _set(optimizer, settings)
        rate = getattr(optimizer, "learn_rate", None)
        self.owned.step(self.values, gradient.vector, scale, norm)
        _set(optimizer, before)
        optimizer.step_schedules()
        self.version += 1
        counts = Counter(report.counts)
        counts[f"{STALENESS}{staleness}"] += 1
        if self._n_dropped:
            counts[DROPPED] += self._n_dropped
            self._n_dropped = 0
        learn_rate = None if rate is None else float(rate)
        return report._replace(gradient_norm=norm, learn_rate=learn_rate, counts=dict(counts))

    def settings(self, optimizer: Any) -> Dict[str, float]:
        """What the optimizer's next step needs to be made with a gradient that is old."""
        if type(optimizer) is not LazyAdam:
            return {}
        settings = settings_of(optimizer)
        changed = stale_settings(settings, self.n_workers)
        return {name: value for name, value in changed.items() if value != settings[name]}

    def forget(self, worker: int) -> None:
        """A worker is gone, or starts anew."""
        self.ledger.back(worker)

    def take(self) -> ServerReport:
        """What has come since the last time."""
        made, self._made = self._made, []
        return ServerReport(made, self.version, self.ledger.end, self.ledger.is_over)

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """Evaluations have changed schedules of the run's optimizer (``schedule_states``)."""
        restore_schedules(self.optimizer, states)

    def snapshot(self) -> Dict[str, Any]:
        """All that another server needs to go on from here, also what was not told yet;
        copies."""
        kept = self.owned.kept()
        return {
            "version": self.version,
            "untold": list(self._made),
            "ledger": self.ledger.state(),
            "weights": _copy(self.values),
            "arrays": {name: _copy(self.plane.state[name]) for name in ARRAYS if name in kept},
            "state": {**optimizer_state(self.optimizer)[0], "kept": kept},
        }


def _copy(array: Any) -> Any:
    """On the host."""
    return to_numpy(array) if not is_numpy_array(array) else array.copy()


def _set(optimizer: Any, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        setattr(optimizer, name, value)
