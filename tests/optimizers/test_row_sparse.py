"""Row-sparse optimizers, compared with their formulas in double precision, and with Thinc's."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import SGD

from tests.ops.array_backends import EACH_OPS
from thincdialog.ops.choice import get_dialog_ops
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.momentum_sgd import MomentumSGD
from thincdialog.optimizers.row_sparse import Segment
from thincdialog.optimizers.sparse_sgd import SparseAdagrad, SparseSGD
from thincdialog.optimizers.state import optimizer_state, restore_optimizer
from thincdialog.registry import registry

KEY = (0, "parameters")
WIDTH, N_ROWS, N_DENSE = 4, 6, 16
SIZE = N_DENSE + WIDTH * N_ROWS
RATE, L2, SCALE = 0.05, 0.1, 0.5


class Sgd:
    def step(self, W, g, rate, used):
        W[used] -= rate * g[used]


class Adagrad:
    def __init__(self):
        self.S = np.zeros(SIZE)

    def step(self, W, g, rate, used):
        self.S[used] += g[used] ** 2
        W[used] -= rate * g[used] / (np.sqrt(self.S[used]) + 1e-8)


class Momentum:
    nesterov = False

    def __init__(self):
        self.V = np.zeros(SIZE)

    def step(self, W, g, rate, used):
        self.V[used] = 0.9 * self.V[used] + g[used]
        ahead = g[used] + 0.9 * self.V[used] if self.nesterov else self.V[used]
        W[used] -= rate * ahead


class Nesterov(Momentum):
    nesterov = True


class Adam:
    nu = 1.0

    def __init__(self):
        self.m, self.v, self.n = np.zeros(SIZE), np.zeros(SIZE), 0

    def step(self, W, g, rate, used):
        self.n += 1
        self.m[used] = 0.9 * self.m[used] + 0.1 * g[used]
        self.v[used] = 0.999 * self.v[used] + 0.001 * g[used] ** 2
        rate *= np.sqrt(1 - 0.999**self.n)
        ahead = self.nu * self.m[used] / (1 - 0.9**self.n) + (1 - self.nu) * g[used]
        W[used] -= rate * ahead / (np.sqrt(self.v[used]) + 1e-8)


class AdamAhead(Adam):
    nu = 0.7


class LazyAdamAhead(LazyAdam):
    nu = 0.7


# Our optimizer, and the formula.
KINDS = {
    "SparseSGD": (SparseSGD, Sgd),
    "SparseAdagrad": (SparseAdagrad, Adagrad),
    "LazyAdam": (LazyAdam, Adam),
    "MomentumSGD": (partial(MomentumSGD, momentum=0.9, nesterov=False), Momentum),
    "nesterov": (partial(MomentumSGD, momentum=0.9, nesterov=True), Nesterov),
    "nu": (LazyAdamAhead, AdamAhead),
}
EVERY = pytest.mark.parametrize("name", KINDS)
OPS = pytest.mark.parametrize("ops_name", ["numpy", "fast"])


def make(name, **options):
    return KINDS[name][0](RATE, **{"grad_clip": 0.0, "use_averages": False, **options})


def get_ops(name):
    if name == "fast":
        pytest.importorskip("numba")
    return get_dialog_ops(-1, name)


def gradient(rows, step):
    dense = np.random.default_rng(step).normal(size=SIZE).astype("f")
    absent = [row for row in range(N_ROWS) if row not in rows]
    dense[N_DENSE:].reshape(N_ROWS, WIDTH)[absent] = 0
    return dense


@EVERY
@OPS
@pytest.mark.parametrize("is_decay", [True, False], ids=["decay", "in gradient"])
@given(uses=st.lists(st.sets(st.integers(0, N_ROWS - 1)), min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_row_sparse_steps_are_those_of_the_formula_for_the_rows_used(
    name, ops_name, is_decay, uses
):
    ops = get_ops(ops_name)
    optimizer, reference = make(name, L2=L2, L2_is_weight_decay=is_decay), KINDS[name][1]()
    values = np.random.default_rng(9).normal(size=SIZE).astype("f")
    wanted = values.astype("d")
    for step, rows in enumerate(uses):
        d = gradient(rows, step)
        before, kept = values.copy(), d.copy()
        table = Segment(N_DENSE, SIZE, WIDTH, np.array(sorted(rows), dtype="int64"))
        parts = [Segment(0, N_DENSE), table]
        optimizer.update_parts(KEY, values, d, parts, scale=SCALE, ops=ops)
        assert d.tobytes() == kept.tobytes()
        used = np.arange(SIZE) < N_DENSE
        used |= np.isin((np.arange(SIZE) - N_DENSE) // WIDTH, sorted(rows))
        assert values[~used].tobytes() == before[~used].tobytes()
        g = SCALE * d.astype("d") + (0 if is_decay else L2 * wanted)
        reference.step(wanted, g, RATE, used)
        if is_decay:
            wanted[used] *= 1 - RATE * L2
    np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-5)


@EACH_OPS
@EVERY
def test_row_sparse_steps_on_a_device_equal_those_of_the_formula(name, ops):
    optimizer, reference = make(name), KINDS[name][1]()
    values = ops.asarray1f(np.random.default_rng(9).normal(size=SIZE))
    wanted = ops.to_numpy(values).astype("d")
    for step in range(4):
        d = gradient(range(N_ROWS), step)
        table = Segment(N_DENSE, SIZE, WIDTH, ops.xp.arange(N_ROWS))
        optimizer.update_parts(KEY, values, ops.asarray1f(d), [Segment(0, N_DENSE), table])
        reference.step(wanted, d.astype("d"), RATE, np.ones(SIZE, dtype=bool))
    np.testing.assert_allclose(ops.to_numpy(values), wanted, rtol=1e-4, atol=1e-5)


@EVERY
@OPS
def test_row_sparse_gradients_of_rows_alone_are_those_of_the_vector(name, ops_name):
    ops = get_ops(ops_name)
    rows, dense = np.array([1, 2, 5]), Segment(0, N_DENSE)
    found = []
    for is_apart in (False, True):
        optimizer, values = make(name, L2=L2), np.random.default_rng(9).normal(size=SIZE)
        values, squares = values.astype("f"), []
        for step in range(3):
            d, d_rows = gradient(rows.tolist(), step), None
            if is_apart:
                d_rows = d[N_DENSE:].reshape(N_ROWS, WIDTH)[rows]
                d[N_DENSE:] = np.nan  # Must not be read.
            parts = [dense, Segment(N_DENSE, SIZE, WIDTH, rows, d_rows)]
            squares.append(sum(part.square_sum(d, ops) for part in parts))
            optimizer.update_parts(KEY, values, d, parts, scale=SCALE, ops=ops)
        found.append((values.tobytes(), squares))
    assert found[0] == found[1]


def test_sparse_sgd_called_like_thincs_is_thincs():
    one = np.random.default_rng(9).normal(size=(4, 5)).astype("f")
    two, d = one.copy(), np.random.default_rng(3).normal(size=(4, 5)).astype("f")
    options = {"L2": 0.01, "grad_clip": 0.7, "use_averages": False}
    thinc, sparse = SGD(0.1, **options), SparseSGD(0.1, **options)
    for _ in range(3):
        one, _ = thinc(KEY, one, d.copy(), lr_scale=0.5)
        mine = d.copy()
        two, cleared = sparse(KEY, two, mine, lr_scale=0.5)
        assert not cleared.any() and sparse.learn_rate == 0.1
    np.testing.assert_allclose(one, two, rtol=1e-5)


@EVERY
def test_row_sparse_state_is_saved_and_restored(name):
    values = np.ones(SIZE, dtype="f")
    optimizer = make(name)
    parts = [Segment(0, SIZE)]
    for step in range(3):
        optimizer.update_parts(KEY, values, gradient(range(N_ROWS), step), parts)
    state, arrays = optimizer_state(optimizer)
    other, its_values = make(name), values.copy()
    restore_optimizer(
        other, its_values, state, {name: array.copy() for name, array in arrays.items()}
    )
    d = gradient(range(N_ROWS), 7)
    optimizer.update_parts(KEY, values, d, parts)
    other.update_parts(KEY, its_values, d, parts)
    assert values.tobytes() == its_values.tobytes()


@pytest.mark.parametrize("name", ["SparseSGD", "SparseAdagrad", "MomentumSGD", "LazyAdam"])
def test_row_sparse_are_registered_with_their_settings(name):
    registry.ensure_populated()
    make = registry.optimizers.get(f"thincdialog.{name}.v1")
    optimizer = make(iter([0.5, 0.25]), L2=0.1, grad_clip=2.0, use_averages=True, average_every=3)
    assert (optimizer.learn_rate, optimizer.L2, optimizer.grad_clip) == (0.5, 0.1, 2.0)
    optimizer.step_schedules()
    assert optimizer.learn_rate == 0.25
    values = np.ones(SIZE, dtype="f")
    for step in range(3):
        assert KEY not in optimizer.averages
        optimizer.update_parts(KEY, values, gradient([1], step), [Segment(0, SIZE)])
    assert optimizer.averages[KEY].tobytes() == values.tobytes()
    assert make(0.1).averages is None
    with pytest.raises(ValueError, match="average_every is 0"):
        make(0.1, average_every=0)


@EVERY
def test_fast_ops_have_compiled_steps_sums_and_averages_of_their_own(name):
    rows = np.array([0, 2, 5])
    parts = [Segment(0, N_DENSE), Segment(N_DENSE, SIZE, WIDTH, rows)]
    found = []
    for ops in (get_ops("numpy"), get_ops("fast")):
        optimizer = make(name, use_averages=True, average_every=2)
        if ops.name == "thincdialog_fast":
            optimizer.step_block = None  # Must not be called.
        values = np.random.default_rng(9).normal(size=SIZE).astype("f")
        squares = []
        for step in range(6):
            d = gradient(rows.tolist(), step)
            squares.append(sum(part.square_sum(d, ops) for part in parts))
            optimizer.update_parts(KEY, values, d, parts, ops=ops)
        found.append([values, optimizer.averages[KEY], np.array(squares)])
    for one, two in zip(*found):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


class Meanwhile(LazyAdam):
    """Simulates another worker that changes weights and state during a step."""

    def step_block(self, xp, dW, state, n_updates):
        step = super().step_block(xp, dW, state, n_updates)
        self.is_private = not any(
            np.shares_memory(mine, everybodys)
            for mine, everybodys in zip(state, (self.mom1[KEY], self.mom2[KEY]))
        )
        self.weights[:] += 10.0
        return step


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("rows", [None, np.array([0, 2, 5])])
def test_changes_that_other_workers_make_meanwhile_are_kept(rows, is_shared):
    found = []
    for make in (LazyAdam, Meanwhile):
        optimizer = make(0.1, grad_clip=0.0)
        optimizer.is_shared = is_shared
        values = np.zeros(WIDTH * N_ROWS, "f")
        optimizer.weights = values
        d = np.random.default_rng(9).normal(size=values.shape).astype("f")
        part = Segment(0, values.size, WIDTH if rows is not None else 0, rows)
        optimizer.update_parts(KEY, values, d, [part])
        found.append((values, optimizer.mom1[KEY], optimizer.mom2[KEY]))
    (alone, *state), (together, *state_together) = found
    np.testing.assert_allclose(together, alone + 10, rtol=1e-5)
    for one, two in zip(state, state_together):
        np.testing.assert_array_equal(one, two)
    assert optimizer.is_private == (is_shared or rows is not None)
