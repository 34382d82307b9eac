"""Each unit is reported once, and each step is in the weights, whenever a server dies."""

import pickle

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import SGD, NumpyOps

from thincdialog.optimizers.row_sparse import Segment
from thincdialog.protocol import StepReport
from thincdialog.runners.cluster.gradient_server import GradientServer, LearnedUnit, async_layout
from thincdialog.runners.shared_arrays import private_arrays

FIRST = {
    "version": 0,
    "n_dropped": 0,
    "ledger": {"first": 0, "next": [0], "ends": [None], "again": []},
    "weights": numpy.zeros(8, "f"),
    "arrays": {},
    "state": {"kept": [], "settings": {}, "schedules": {}, "nr_update": []},
}
STRETCHES = [Segment(0, 8)]


class Run:
    """A server that may die at any moment, its workers, and the run that asks it for steps. The
    gradient of each unit is 1, so each step subtracts 1 from all weights.

    sizes: Number of units of each share of an epoch.
    """

    def __init__(self, sizes, without_examples, n_workers):
        self.sizes, self.without_examples = sizes, without_examples
        self.saved, self.held = FIRST, dict.fromkeys(range(n_workers))
        self.told = []
        self.start()

    def start(self):
        saved = pickle.loads(pickle.dumps(self.saved))
        optimizer = SGD(1.0, L2=0.0, grad_clip=0.0)
        arrays = private_arrays(async_layout(STRETCHES, len(self.held)))
        self.server = GradientServer(STRETCHES, optimizer, NumpyOps(), arrays, 2)
        saved["state"].update(settings={}, schedules={})
        self.server.restore(saved)
        self.held = dict.fromkeys(self.held)

    def save(self):
        self.saved, told = self.server.snapshot()
        self.told += [unit for _, unit in told]

    @property
    def n_told(self):
        """Number of steps that were reported."""
        return sum(bool(each.report.examples) for each in self.told)

    def start_epoch(self, epoch):
        self.first = self.server.start_epoch(epoch, len(self.sizes))["first"]
        self.save()

    def units(self):
        """RETURNS: All units of the epoch."""
        ends = [self.first + len(self.sizes) * size for size in self.sizes]
        units = [range(self.first, end, len(self.sizes)) for end in ends]
        return sorted(share + unit for share, own in enumerate(units) for unit in own)

    def work(self, worker):
        """Make one call of a worker. RETURNS: Whether it has a unit to work on."""
        learned = None
        if self.held[worker] is not None:
            unit, version = self.held[worker]
            report = StepReport(*([0, 0.0, 0] if unit in self.without_examples else [1, 0.0, 1]))
            self.server.arrays[f"vector {worker}"][:] = 1
            learned = LearnedUnit(unit, version, report if unit in self.units() else None)
        self.held[worker] = self.server.exchange(worker, learned, (0, 1))
        assert not self.server.arrays[f"vector {worker}"].any()
        return self.held[worker] is not None

    def settle(self):
        self.server.end_at(0)
        for worker in self.held:
            if self.held[worker] is not None:
                assert not self.work(worker)
        self.save()


SHARES = st.tuples(st.integers(1, 9)) | st.lists(st.integers(0, 4), min_size=2, max_size=3)
MOVES = st.sampled_from(["work", "work", "work", "work", "save", "die", "forget"])


@settings(max_examples=60)
@given(st.data(), SHARES, st.sets(st.integers(0, 17)), st.integers(1, 3))
@pytest.mark.slow
def test_gradient_server_each_unit_is_reported_and_applied_once(
    data, sizes, without_examples, n_workers
):
    run, units = Run(sizes, without_examples, n_workers), []
    for epoch in range(2):
        run.start_epoch(epoch)
        assert len(sizes) > 1 or run.first == epoch * sizes[0]
        units += run.units()
        n_deaths = due = 0
        for _ in range(60):
            due = max(due, run.n_told + data.draw(st.integers(1, 4)))
            run.server.end_at(due)
            for _ in range(data.draw(st.integers(1, 6))):
                move, worker = data.draw(MOVES), data.draw(st.integers(0, n_workers - 1))
                if move == "work":
                    run.work(worker)
                elif move == "save":
                    run.save()
                elif move == "forget" and run.held[worker] is not None:
                    run.server.ledger.back(worker)
                    run.held[worker] = None
                elif move == "die" and n_deaths < 4:
                    n_deaths += 1
                    run.start()
                    run.server.end_at(due)
            for worker in run.held:
                run.work(worker)
            run.save()
            assert run.n_told <= due
            if data.draw(st.booleans()) or run.saved["is_over"]:
                if n_deaths < 4 and data.draw(st.booleans()):
                    run.start()
                run.settle()
                made = run.n_told
                assert made == run.server.version
                assert (run.server.values == -made).all()
                if run.saved["is_over"]:
                    break
        assert run.saved["is_over"]
        assert sorted(each.unit for each in run.told) == units


def test_gradient_server_counts_dropped_gradients_when_workers_begin_again():
    run = Run([9], set(), 2)
    run.start_epoch(0)
    run.server.end_at(9)
    run.work(1)
    for _ in range(5):
        run.work(0)
    run.work(1)  # Its gradient is four versions old: two are allowed.
    run.save()
    run.start()
    run.server.end_at(9)
    run.work(0)
    run.work(0)
    run.save()
    assert run.told[-1].report.counts["dropped_gradients"] == 1
