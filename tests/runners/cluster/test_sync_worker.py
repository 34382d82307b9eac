"""Any number of workers ends with identical weights, whatever the world and the optimizer."""

import numpy
import pytest
from thinc.api import Optimizer

from tests.processes import slow
from tests.runners.cluster.workers_in_threads import ThreadedWorkers, check_worker_left_alone, made
from tests.runners.resuming import (
    ADAM,
    CLASSIFY,
    FIXED,
    LAZY,
    LAZY_SCHEDULE,
    LIVE,
    MODEL_REPLIES,
    NOTES,
    PARTNER,
    RADAM,
    REPEAT,
    SGD,
    SORTED,
    STREAM,
    UNSAVED,
    WORDS,
    config,
)
from thincdialog.errors import TrainingError
from thincdialog.optimizers import adam
from thincdialog.registry import registry
from thincdialog.runners.cluster import shard
from thincdialog.runners.cluster.actor import WorkerActor

NUMPY = ("[system]\n", '[system]\nops = "numpy"\n')
FAST = ("[system]\n", '[system]\nops = "fast"\n')
L2_GRADIENT = ('"Adam.v1"\n', '"Adam.v1"\nL2 = 0.01\nL2_is_weight_decay = false\n')
CASES = {
    "adam": (FIXED,),
    "lazy_averages": slow(WORDS, LAZY),
    "live": slow(LIVE, LAZY_SCHEDULE),
    "fast": slow(FIXED, FAST, LAZY),
    "fast_adam": slow(FIXED, FAST),
    "sorted": slow(SORTED, RADAM),
    "stream": slow(FIXED, STREAM),
    "classifier": slow(PARTNER, SGD, *CLASSIFY),
    "model_replies": slow(LIVE, MODEL_REPLIES),
    "mixture": slow(WORDS, REPEAT, LAZY),
    "L2": slow(FIXED, L2_GRADIENT),
    "unsaved": slow(UNSAVED, LAZY, *CLASSIFY),
}
N_MICROBATCHES = 3


@pytest.fixture
def short_blocks(monkeypatch):
    """Have each worker own parts of every segment, with borders at odd positions."""
    monkeypatch.setattr(shard, "BLOCK_FLOATS", 40)


@pytest.fixture(autouse=True)
def notes():
    NOTES.clear()
    yield NOTES
    NOTES.clear()


class Leaves(Optimizer):
    """A custom optimizer that does not clear the gradient."""

    def __call__(self, key, weights, gradient, *, lr_scale=1.0):
        stepped, _ = super().__call__(key, weights, gradient.copy(), lr_scale=lr_scale)
        return stepped, gradient


@registry.optimizers("leaves_the_gradient.v1")
def build_leaves():
    return Leaves(0.01)


@registry.optimizers("clears_the_gradient.v1")
def build_clears():
    return Optimizer(0.01)


def weights_of(text, n_workers, plane="shm"):
    return ThreadedWorkers(text, n_workers, N_MICROBATCHES, plane).train(2)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case.values, id=name, marks=case.marks)
        if hasattr(case, "marks")
        else pytest.param(case, id=name)
        for name, case in CASES.items()
    ],
)
def test_any_number_of_workers_ends_with_identical_weights(case, notes, short_blocks):
    # A ranker would learn nothing from single examples; these cases use a classifier.
    text = config(*case, tasks=1 if CLASSIFY[0] in case else 2)
    alone = weights_of(text, 1)
    # ``notes`` checks that a microbatch has the same examples, whichever worker trains on it.
    seen = dict(notes.seen)
    for n_workers, plane in ((2, "shm"), (4, "shm"), (2, "store"), (3, "store")):
        found = weights_of(text, n_workers, plane)
        assert numpy.array_equal(found, alone), (n_workers, plane)
    assert notes.seen == seen
    first = made(text).learner.weights
    assert not numpy.array_equal(alone, first)


def test_a_worker_that_trains_shows_progress():
    actor = WorkerActor()
    [actor.part] = ThreadedWorkers(config(FIXED, tasks=2), 1, N_MICROBATCHES).workers
    actor.call("start_epoch", 0)
    before = actor.progress()
    actor.call("run", 0, 1)
    assert actor.progress() == before + N_MICROBATCHES


@pytest.mark.parametrize(
    "case", [(FIXED,), (FIXED, FAST), (FIXED, RADAM), (FIXED, SGD), (FIXED, L2_GRADIENT)]
)
def test_steps_in_blocks_give_identical_weights(case, monkeypatch, short_blocks):
    text = config(*case, tasks=2)
    whole = weights_of(text, 1)
    monkeypatch.setattr(adam, "BLOCK_FLOATS", 100)
    for n_workers in (1, 2):
        numpy.testing.assert_array_equal(weights_of(text, n_workers), whole)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_gradient_that_a_custom_optimizer_leaves_is_not_applied_again(n_workers):
    """With one microbatch per slot, the model adds up gradients in the slot itself. A gradient that
    is not cleared would be applied again."""
    found = []
    for name in ("clears_the_gradient.v1", "leaves_the_gradient.v1"):
        # Thinc's Adam clears the gradient, but its compiled kernels change the last digits.
        text = config(FIXED, NUMPY, (ADAM, f'"{name}"\n'), tasks=2)
        found.append(ThreadedWorkers(text, n_workers, n_workers, "shm").train(2))
    numpy.testing.assert_array_equal(*found)


def test_steps_report_the_same_for_any_number_of_workers():
    text, told = config(FIXED), []
    for n_workers in (1, 3):
        workers = ThreadedWorkers(text, n_workers, N_MICROBATCHES)
        workers.each("start_epoch", 0)
        ran = workers.run(3)
        steps = [[each.steps[number] for each in ran] for number in range(3)]
        told.append(
            [
                (
                    {part.norm for part in parts},
                    {part.learn_rate for part in parts},
                    [report for part in parts for report in part.reports],
                )
                for parts in steps
            ]
        )
    assert told[0] == told[1]
    assert all(len(reports) == 3 for _, _, reports in told[0])


@pytest.mark.parametrize("plane", ["shm", "store"])
def test_another_number_of_workers_can_resume(plane):
    text = config(WORDS, LAZY)
    whole = weights_of(text, 1)
    workers = ThreadedWorkers(text, 2, N_MICROBATCHES, plane)
    workers.each("start_epoch", 0)
    workers.run(4)
    for n_workers in (4, 1, 2):
        place = workers.workers[0].place()
        assert all(worker.place() == place for worker in workers.workers)
        workers = workers.resumed_by(ThreadedWorkers(text, n_workers, N_MICROBATCHES, plane))
        workers.run(1)
    workers.finish()
    workers.each("start_epoch", 1)
    workers.finish()
    assert numpy.array_equal(workers.weights(), whole)


def test_a_world_without_a_state_replays_the_epoch():
    text = config(UNSAVED, LAZY, *CLASSIFY, tasks=1)
    whole = weights_of(text, 1)
    workers = ThreadedWorkers(text, 2, N_MICROBATCHES)
    workers.each("start_epoch", 0)
    workers.run(3)
    place = workers.workers[0].place()
    assert place == {"origin": {"epoch": 0, "before": None}, "n_before": 9}
    others = workers.resumed_by(ThreadedWorkers(text, 3, N_MICROBATCHES))
    others.finish()
    others.each("start_epoch", 1)
    others.finish()
    assert numpy.array_equal(others.weights(), whole)


def test_a_gradient_that_is_not_finite_ends_the_run_and_changes_nothing():
    workers = ThreadedWorkers(config(FIXED), 2, 2)
    workers.each("start_epoch", 0)
    before = workers.weights()
    workers.workers[1].arrays["vector 1"][:] = numpy.inf
    with pytest.raises(TrainingError, match="gradient of step 1 is not finite.*colours/"):
        workers.run(1)
    assert numpy.array_equal(workers.weights(), before)


@pytest.mark.parametrize("plane", ["shm", "store"])
@pytest.mark.parametrize("n_microbatches", [2, 4])
def test_a_worker_left_alone_within_a_step_starts_it_again(plane, n_microbatches):
    check_worker_left_alone(config(FIXED), n_microbatches, plane)
