"""A parameter server, which applies the gradients of workers one after the other."""

import math
from collections import Counter
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...errors import TrainingError
from ...optimizers.lazy_adam import LazyAdam
from ...optimizers.row_sparse import Segment
from ...optimizers.scored_schedules import restore_schedules
from ...optimizers.shared_state import settings_of
from ...optimizers.state import optimizer_state
from ...protocol import StepReport
from ...training.progress import STALENESS
from ..shared_arrays import Arrays, Layout, private_arrays
from ..stale_steps import stale_settings
from .exchange import SUMS, VALUES, clear, fill, gradients_layout, paste, read, state_layout
from .ledger import Ledger
from .shard import Gradient, Shard, pieces_of

# Key in the counts of a step, for gradients that were dropped since the last step as too old.
DROPPED = "dropped_gradients"


class LearnedUnit(NamedTuple):
    """Hold a worker's result for one unit of work. The gradient is in the ``async_layout``.

    unit (int): Number of the unit in the ``Ledger``.
    version (int): Version of the weights that the gradient was computed with.
    report (Optional[StepReport]): Report of the unit; None if the epoch has no such unit.
    gpu_bytes (Optional[int]): Size of the memory pool of the worker's GPU, if it has one.
    state (Optional[Dict[str, Any]]): State of the worker's world, if there is no such unit.
    """

    unit: int
    version: int
    report: Optional[StepReport]
    gpu_bytes: Optional[int] = None
    state: Optional[Dict[str, Any]] = None


def async_layout(segments: Sequence[Segment], n_workers: int) -> Layout:
    """Return the layout of the arrays that a server shares with the workers of its machine: for
    each worker, its gradient and the weights that it trains with."""
    values = [(f"values {worker}", (segments[-1].stop,), "<f4") for worker in range(n_workers)]
    return [*gradients_layout(segments, n_workers), *values]


class GradientServer:
    """Hand out units of work, and make a step of the optimizer with each gradient that workers
    return. A gradient that is too old is dropped, and its unit is handed out again.

    segments (Sequence[Segment]): Segments that make up the parameters.
    optimizer (Optimizer): A new optimizer, as in the config.
    ops (Ops): Ops for the host.
    arrays (Arrays): Arrays with an ``async_layout`` for ``n_workers``.
    bound (int): Maximum age of a gradient, in versions of the weights.
    n_workers (int): Number of workers that return gradients.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        optimizer: Any,
        ops: Any,
        arrays: Arrays,
        bound: int,
        n_workers: int = 1,
    ):
        self.optimizer, self.arrays = optimizer, arrays
        self.bound, self.n_workers = bound, n_workers
        self.own = private_arrays(state_layout(segments))
        self.values = self.own[VALUES]
        self.shard = Shard(pieces_of(segments, 0, 1), optimizer, ops, self.own)
        self.ledger = Ledger()
        self.version = self._limit = self._n_dropped = 0
        # Results of units since the last snapshot, and the numbers of their workers.
        self._made: List[Tuple[int, LearnedUnit]] = []

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Resume from a snapshot. Call this only once, because it requires a new optimizer.

        saved (Mapping[str, Any]): A result of ``snapshot``.
        """
        fill(self.own, saved)
        self.shard.restore(saved["state"], self.values)
        self.ledger.restore(saved["ledger"])
        self.version = self._limit = saved["version"]
        self._n_dropped = saved["n_dropped"]

    def start_epoch(self, epoch: int, n_shares: int = 1) -> Dict[str, Any]:
        """Begin an epoch.

        epoch (int): Number of the epoch, from 0.
        n_shares (int): Number of shares of the data.
        RETURNS (Dict[str, Any]): Where the epoch begins, as JSON values: its number, its first
            unit, and for each share the state of a world before the epoch; None if not known.
        """
        before = self.ledger.start_epoch(n_shares)
        return {"epoch": epoch, "first": self.ledger.first, "before": before}

    def end_at(self, version: float) -> int:
        """Make no steps after this version, except with units that are at workers.

        RETURNS (int): The current version.
        """
        self._limit = int(min(version, 1 << 62))
        return self.version

    def exchange(
        self, worker: int, learned: Optional[LearnedUnit], at: Tuple[int, int], sent: Any = None
    ) -> Optional[Tuple[int, int]]:
        """Apply a worker's result, and hand out the next unit to the worker, with the current
        weights.

        worker (int): Number of the worker.
        learned (Optional[LearnedUnit]): The result of its last unit; None if it had no unit.
        at (Tuple[int, int]): See ``AsyncWorker``.
        sent (Optional[List[Any]]): The worker's gradient (``exchange.cut``), if it was not written
            to ``arrays``.
        RETURNS (Optional[Tuple[int, int]]): The next unit, and the current version of the weights;
            None if there is nothing to do now.
        RAISES (TrainingError): If a gradient is not finite.
        """
        if sent is not None:
            paste(self.arrays, worker, self.shard.pieces, sent)
        gradient = read(self.arrays, worker)
        if learned is not None and self.ledger.is_wanted(worker, learned.unit):
            self._accept(worker, learned, gradient)
        clear(gradient, self.shard.pieces)  # A gradient that was dropped is not cleared yet.
        if self.version + self.ledger.n_out >= self._limit:
            return None
        unit = self.ledger.hand_out(worker, at)
        self.arrays[f"values {worker}"][:] = self.values
        return None if unit is None else (unit, self.version)

    def _accept(self, worker: int, learned: LearnedUnit, gradient: Gradient) -> None:
        """Apply the gradient of a unit, unless it is too old or the epoch has no such unit."""
        report = learned.report
        if report is None:
            self.ledger.past_end(worker, learned.state)
            return
        staleness = self.version - learned.version
        if staleness > self.bound:
            self._n_dropped += 1
            self.ledger.back(worker)
            return
        if report.examples:
            report = self._apply(gradient, report, staleness)
        self._made.append((worker, learned._replace(report=report)))
        self.ledger.done(worker)

    def _apply(self, gradient: Gradient, report: StepReport, staleness: int) -> StepReport:
        """Make a step of the optimizer with a gradient of this age, and complete its report."""
        scale = 1.0 / report.weight
        self.shard.add_up([gradient], self.own[SUMS])
        norm = self.shard.norm(self.own[SUMS], scale)
        if not math.isfinite(norm):
            raise TrainingError("The gradient is not finite; training stopped.")
        optimizer = self.optimizer
        settings = settings_of(optimizer) if type(optimizer) is LazyAdam else {}
        if settings:
            _set(optimizer, stale_settings(settings, self.n_workers))
        learn_rate = float(optimizer.learn_rate)
        self.shard.step(self.values, gradient.vector, scale, norm)
        _set(optimizer, settings)
        optimizer.step_schedules()
        self.version += 1
        counts = Counter(report.counts)
        counts[f"{STALENESS}{staleness}"] += 1
        if self._n_dropped:
            counts[DROPPED] += self._n_dropped
            self._n_dropped = 0
        return report._replace(gradient_norm=norm, learn_rate=learn_rate, counts=dict(counts))

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """Take over the schedules of the run's optimizer (``schedule_states``), after evaluations
        have changed them."""
        restore_schedules(self.optimizer, states)

    def snapshot(self) -> Tuple[Dict[str, Any], List[Tuple[int, LearnedUnit]]]:
        """Return a copy of the whole state of a server, from which another server can resume, and
        the results of the units that were done since the last snapshot, with the numbers of their
        workers. As reports come with the snapshot that has their steps, each unit is reported once,
        whenever a server dies. If a report has no examples, no step was made."""
        made, self._made = self._made, []
        kept = self.shard.kept()
        snapshot = {
            "version": self.version,
            "n_dropped": self._n_dropped,
            "ledger": self.ledger.state(),
            "is_over": self.ledger.is_over,
            "weights": self.values.copy(),
            "arrays": {name: self.own[name].copy() for name in kept},
            "state": {**optimizer_state(self.optimizer)[0], "kept": kept},
        }
        return snapshot, made


def _set(optimizer: Any, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        setattr(optimizer, name, value)
