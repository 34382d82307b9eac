import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import shared_memory

import numpy as np
import pytest
from thinc.api import Adam, NumpyOps, RAdam, set_current_ops

from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.shared_moments import SharedMoments
from thincdialog.optimizers.shared_state import for_a_worker, lay_out_state, use_state

KEY = (0, "parameters")
SIZE = 70_000  # More than two blocks.
OPS = ["numpy", "fast"]


def gradients(n_steps):
    rng = np.random.default_rng(0)
    return [rng.normal(size=SIZE).astype("f") for _ in range(n_steps)]


@pytest.mark.parametrize("ops", OPS)
@pytest.mark.parametrize("make", [Adam, RAdam])
@pytest.mark.parametrize("L2_is_weight_decay", [True, False])
def test_shared_moments_are_thincs_where_nobody_else_steps(make, ops, L2_is_weight_decay):
    options = {"grad_clip": 3.0, "L2": 0.1, "L2_is_weight_decay": L2_is_weight_decay}
    thinc, twin = make(0.01, **options), SharedMoments(make(0.01, **options))
    found = []
    for optimizer in (thinc, twin):
        values = np.ones(SIZE, "f")
        for moments in (optimizer.mom1, optimizer.mom2):
            moments[KEY] = np.zeros(SIZE, "f")
        with using_ops(get_dialog_ops(-1, ops)):
            for d in gradients(12):
                after, _ = optimizer(KEY, values, d)
                assert after is values or np.shares_memory(after, values)
        found.append((values, optimizer.mom1[KEY], optimizer.mom2[KEY]))
    for one, two in zip(*found):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("ops", OPS)
@pytest.mark.parametrize("make", [Adam, RAdam])
def test_shared_moments_of_two_workers_ruin_nothing(make, ops):
    """A large first moment that one worker wrote, a small second one of another's."""
    found = []
    for optimizer in (make(0.01, grad_clip=0.0), make(0.01, grad_clip=0.0)):
        if found:
            optimizer = SharedMoments(optimizer)
        values = np.zeros(SIZE, "f")
        optimizer.mom1[KEY], optimizer.mom2[KEY] = np.ones(SIZE, "f"), np.full(SIZE, 1e-10, "f")
        optimizer.nr_update[KEY] = 100
        with using_ops(get_dialog_ops(-1, ops)):
            optimizer(KEY, values, np.full(SIZE, 1e-6, "f"))
        found.append(float(abs(values).max()))
    alone, shared = found
    assert 0.001 < shared < 0.01 * 7.3 and alone > 10.0


@pytest.mark.parametrize("make", [Adam, RAdam])
def test_threads_share_the_arrays_and_nothing_that_a_step_takes(make):
    """Each stops in the middle of every block, and the other goes on."""
    optimizer = make(0.001, grad_clip=0.0, use_averages=False)
    values = np.zeros(SIZE, "f")
    arrays = lay_out_state(optimizer, KEY, values)
    twins = [for_a_worker(optimizer) for _ in range(2)]
    barrier = threading.Barrier(2)

    class Stopping(NumpyOps):
        def adam(self, *arguments):
            barrier.wait(10)
            return super().adam(*arguments)

        def reshape1f(self, array, size):
            barrier.wait(10)
            return super().reshape1f(array, size)

    def step(twin):
        for n, d in enumerate(gradients(5)):
            twin.nr_update[KEY] = n + 1
            step = twin._radam if make is RAdam else twin._adam
            step(Stopping(), values, d, 1.0, KEY, n + 1)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(step, twins))
    for name, array in arrays.items():
        assert array.all()
        for one in (optimizer, *twins):
            assert getattr(one, name)[KEY] is array
    assert 0.001 < abs(values).max() < 2 * 5 * 0.001 * 7.3


def learn(kind, ops, name, number, n_workers):
    """Steps of one worker process, whose gradients have few rows of a wide table."""
    memory = shared_memory.SharedMemory(name=name)
    values, mom1, mom2 = np.frombuffer(memory.buf, dtype="f").reshape(3, -1)
    set_current_ops(get_dialog_ops(-1, ops))
    optimizer = for_a_worker(KINDS[kind](0.001, grad_clip=0.0))
    use_state(optimizer, KEY, {"mom1": mom1, "mom2": mom2})
    rng = np.random.default_rng(number)
    for step in range(300 // n_workers):
        optimizer.nr_update[KEY] = 10 + step * n_workers + number
        d = np.zeros(values.size, "f")
        d.reshape(-1, 64)[rng.integers(0, values.size // 64, 50)] = rng.normal(size=(50, 64)) * 0.1
        optimizer(KEY, values, d)
    del values, mom1, mom2, optimizer
    memory.close()


KINDS = {"Adam": Adam, "RAdam": RAdam, "LazyAdam": LazyAdam}


@pytest.mark.parametrize(
    "kind, ops",
    [
        pytest.param("Adam", "numpy", marks=pytest.mark.slow),
        pytest.param("Adam", "fast", marks=pytest.mark.slow),
        pytest.param("RAdam", "numpy", marks=pytest.mark.slow),
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
