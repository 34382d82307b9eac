import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import shared_memory

import numpy as np
import pytest
from thinc.api import SGD, Adam, Optimizer, RAdam, warmup_linear

from tests.ops.array_backends import same_bits
from thincdialog.ops.choice import get_dialog_ops
from thincdialog.optimizers import adam
from thincdialog.optimizers.adam import BLOCK_FLOATS, AdamByOps, thincs_step
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.moments import least_second_moment
from thincdialog.optimizers.shared_state import for_a_worker, lay_out_state, use_state
from thincdialog.optimizers.state import ARRAYS, optimizer_state

KEY = (0, "parameters")
SIZE = 2 * BLOCK_FLOATS + 777
OPS = ["numpy", "fast"]


def gradients(n_steps):
    rng = np.random.default_rng(0)
    return [rng.normal(size=SIZE).astype("f") for _ in range(n_steps)]


def trained(step, optimizer, n_steps=12, ops="numpy"):
    weights, gradient = np.ones(SIZE, "f"), np.empty(SIZE, "f")
    for d in gradients(n_steps):
        gradient[:] = d
        stepped = step(optimizer, KEY, weights, gradient, get_dialog_ops(-1, ops))
        assert np.shares_memory(stepped, weights) and not gradient.any()
        optimizer.step_schedules()
    return weights


def whole(optimizer, key, weights, gradient, ops):
    return optimizer(key, weights, gradient)[0]


@pytest.mark.parametrize("ops", OPS)
@pytest.mark.parametrize("make", [Adam, RAdam, SGD])
@pytest.mark.parametrize(
    "options",
    [
        {"grad_clip": 0.0, "use_averages": False},
        {"L2": 0.1, "grad_clip": 3.0},
        {"L2": 0.1, "L2_is_weight_decay": False},
    ],
)
def test_a_step_has_the_bits_of_thincs(options, make, ops):
    found = []
    for step in (whole, thincs_step):
        optimizer = make(warmup_linear(0.1, 5, 20), **options)
        weights = trained(step, optimizer, ops=ops)
        found.append((weights, *optimizer_state(optimizer)))
    (weights, state, arrays), (ours, our_state, our_arrays) = found
    assert state == our_state and set(arrays) == set(our_arrays)
    for array, other in [(weights, ours), *((arrays[name], our_arrays[name]) for name in arrays)]:
        if ops == "fast" and make is Adam:
            # The compiled step computes 1 - beta2 in double precision, so the roots differ by 2e-5.
            # Each of the 12 steps changes a weight by at most 0.1.
            np.testing.assert_allclose(array, other, rtol=1e-4, atol=3e-5)
        else:
            same_bits(array, other)


@pytest.mark.parametrize("grad_clip", [0.0, 1.0])
@pytest.mark.parametrize("size", [0, SIZE])
def test_a_gradient_is_scaled_before_all_else(size, grad_clip):
    scale, ops, rng = 1 / 3, get_dialog_ops(), np.random.default_rng(0)
    options = {"grad_clip": grad_clip, "L2": 0.1, "L2_is_weight_decay": False}
    theirs, ours = np.ones((2, size), "f")
    thincs, other = Adam(0.1, **options), Adam(0.1, **options)
    for step in range(3):
        gradient = rng.normal(size=size).astype("f") * 10**step / max(1.0, size**0.5)
        whole(thincs, KEY, theirs, gradient * np.float32(scale), ops)
        thincs_step(other, KEY, ours, gradient, ops, scale)
        assert not gradient.any()
    same_bits(ours, theirs)


@pytest.mark.parametrize("ops", OPS)
def test_the_state_of_a_step_stays_in_the_same_arrays(ops):
    optimizer, ops = Adam(0.1), get_dialog_ops(-1, ops)
    weights, gradient = np.zeros((2, SIZE), "f")
    thincs_step(optimizer, KEY, weights, gradient, ops)
    first = {name: getattr(optimizer, name)[KEY] for name in ARRAYS}
    thincs_step(optimizer, KEY, weights, gradient, ops)
    assert all(getattr(optimizer, name)[KEY] is array for name, array in first.items())
    assert optimizer.nr_update == {KEY: 2}


class Sized(Optimizer):
    """A custom optimizer that records the length of each step's weights and leaves the gradient
    unchanged."""

    def __call__(self, key, weights, gradient, *, lr_scale=1.0):
        self.seen = [*getattr(self, "seen", []), len(weights)]
        weights, _ = super().__call__(key, weights, gradient.copy(), lr_scale=lr_scale)
        return weights, gradient


def test_a_custom_optimizer_gets_all_at_once_and_the_gradient_is_cleared_afterwards():
    optimizer = Sized(0.1)
    trained(thincs_step, optimizer, 3)
    assert optimizer.seen == [SIZE] * 3


@pytest.mark.parametrize("L2_is_weight_decay", [True, False])
def test_shared_moments_are_thincs_without_other_workers(L2_is_weight_decay):
    options = {"grad_clip": 3.0, "L2": 0.1, "L2_is_weight_decay": L2_is_weight_decay}
    thinc = Adam(0.01, **options)
    twin = AdamByOps(Adam(0.01, **options), get_dialog_ops(), is_shared=True)
    weights = [trained(whole, thinc), trained(whole, twin)]
    for one, two in (weights, *zip((thinc.mom1, thinc.mom2), (twin.mom1, twin.mom2))):
        same_bits(*((each[KEY] if isinstance(each, dict) else each) for each in (one, two)))


@pytest.mark.parametrize("ops", OPS)
def test_shared_moments_of_two_workers_ruin_nothing(ops):
    """One worker wrote a large first moment, and another one a small second moment."""
    found = []
    for is_shared in (False, True):
        optimizer = AdamByOps(Adam(0.01, grad_clip=0.0), get_dialog_ops(-1, ops), is_shared)
        values = np.zeros(SIZE, "f")
        optimizer.mom1[KEY], optimizer.mom2[KEY] = np.ones(SIZE, "f"), np.full(SIZE, 1e-10, "f")
        optimizer.nr_update[KEY] = 100
        optimizer(KEY, values, np.full(SIZE, 1e-6, "f"))
        found.append(float(abs(values).max()))
    alone, shared = found
    assert 0.001 < shared < 0.01 * 7.3 and alone > 10.0


@pytest.mark.parametrize("ops", OPS)
def test_threads_share_the_arrays_and_nothing_that_a_step_takes(ops, monkeypatch):
    """Both threads begin each step at the same time."""
    optimizer = Adam(0.001, grad_clip=0.0, use_averages=False)
    values = np.zeros(SIZE, "f")
    arrays = lay_out_state(optimizer, KEY, values)
    barrier = threading.Barrier(2)

    def waiting(*moments):
        barrier.wait(10)
        return least_second_moment(*moments)

    monkeypatch.setattr(adam, "least_second_moment", waiting)
    twins = [for_a_worker(optimizer, get_dialog_ops(-1, ops)) for _ in range(2)]

    def step(twin):
        for d in gradients(5):
            twin(KEY, values, d)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(step, twins))
    for name, array in arrays.items():
        assert array.all()
        for one in (optimizer, *twins):
            assert getattr(one, name)[KEY] is array
    assert 0.001 < abs(values).max() < 2 * 5 * 0.001 * 7.3


def learn(kind, ops, name, number, n_workers):
    """Make the steps of one worker process, whose gradients have few rows of a wide table."""
    memory = shared_memory.SharedMemory(name=name)
    values, mom1, mom2 = np.frombuffer(memory.buf, dtype="f").reshape(3, -1)
    optimizer = for_a_worker(KINDS[kind](0.001, grad_clip=0.0), get_dialog_ops(-1, ops))
    use_state(optimizer, KEY, {"mom1": mom1, "mom2": mom2})
    rng = np.random.default_rng(number)
    for step in range(300 // n_workers):
        optimizer.nr_update[KEY] = 10 + step * n_workers + number
        d = np.zeros(values.size, "f")
        d.reshape(-1, 64)[rng.integers(0, values.size // 64, 50)] = rng.normal(size=(50, 64)) * 0.1
        optimizer(KEY, values, d)
    del values, mom1, mom2, optimizer
    memory.close()


KINDS = {"Adam": Adam, "LazyAdam": LazyAdam}


@pytest.mark.parametrize(
    "kind, ops",
    [
        pytest.param("Adam", "numpy", marks=pytest.mark.slow),
        pytest.param("Adam", "fast", marks=pytest.mark.slow),
        pytest.param("LazyAdam", "numpy", marks=pytest.mark.slow),
    ],
)
def test_two_processes_that_race_make_no_step_that_one_would_not_make(kind, ops):
    largest = []
    context = multiprocessing.get_context("spawn")
    for n_workers in (1, 2):
        memory = shared_memory.SharedMemory(create=True, size=3 * 4 * 400_000)
        try:
            values = np.frombuffer(memory.buf, dtype="f")
            values[:] = 0.0
            workers = [
                context.Process(target=learn, args=(kind, ops, memory.name, number, n_workers))
                for number in range(n_workers)
            ]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(60)
                assert worker.exitcode == 0
            largest.append(float(abs(values[:400_000]).max()))
            del values
        finally:
            memory.close()
            memory.unlink()
    assert 0.01 < largest[1] < 2 * largest[0]
