import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import Adam

from tests.ops.array_backends import BACKENDS, EACH_OPS, backend
from tests.optimizers.test_row_sparse import KEY, N_DENSE, N_ROWS, SIZE, WIDTH, gradient
from thincdialog.ops.choice import get_dialog_ops
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.row_sparse import Segment


def parts(ops, rows):
    table = Segment(N_DENSE, SIZE, WIDTH, ops.xp.asarray(np.array(rows, dtype="int64")))
    return [Segment(0, N_DENSE), table]


@EACH_OPS
@pytest.mark.parametrize("L2, is_decay", [(0.0, True), (0.1, True), (0.1, False)])
def test_lazy_adam_equals_thinc_when_every_row_is_used(L2, is_decay, ops):
    one = ops.asarray1f(np.random.default_rng(9).normal(size=SIZE))
    two = one.copy()
    options = {"grad_clip": 0.0, "L2": L2, "L2_is_weight_decay": is_decay}
    thinc, lazy = Adam(0.01, use_averages=False, **options), LazyAdam(0.01, **options)
    for step in range(5):
        d = ops.asarray1f(gradient(range(N_ROWS), step))
        thinc(KEY, one, d.copy())
        lazy.update_parts(KEY, two, d, parts(ops, range(N_ROWS)))
    ops.xp.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("is_shared", [False, True])
def test_lazy_adam_larger_than_a_block(is_shared):
    n, width = 3000, 64
    rng = np.random.default_rng(0)
    values = rng.normal(size=n * width).astype("f")
    d = rng.normal(size=n * width).astype("f")
    rows = np.arange(0, n, 2)
    wanted = values.reshape(n, width).copy()
    used = d.reshape(n, width)[rows]
    # In Adam's first step, the corrections of the moments cancel except for eps.
    wanted[rows] -= 0.1 * used / (np.abs(used) + 1e-8 / np.sqrt(0.001))
    dense = values.copy()
    for weights, part in (
        (values, Segment(0, n * width, width, rows)),
        (dense, Segment(0, n * width)),
    ):
        optimizer = LazyAdam(0.1)
        optimizer.is_shared = is_shared
        optimizer.update_parts(KEY, weights, d, [part])
    np.testing.assert_allclose(values.reshape(n, width), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(dense.reshape(n, width)[rows], values.reshape(n, width)[rows])


def test_lazy_adam_averages_every_few_steps_are_close_to_thincs(ops):
    one = np.ones(SIZE, dtype="f")
    two = one.copy()
    thinc = Adam(0.001, grad_clip=0.0)
    lazy = LazyAdam(0.001, grad_clip=0.0, use_averages=True, average_every=4)
    for step in range(400):
        d = gradient(range(N_ROWS), step)
        thinc(KEY, one, d.copy())
        lazy.update_parts(KEY, two, d, parts(ops, range(N_ROWS)))
    np.testing.assert_allclose(lazy.averages[KEY], thinc.averages[KEY], atol=2e-3)
    assert np.abs(one - lazy.averages[KEY]).max() > 2e-3


def test_lazy_adam_average_is_current_between_the_steps_that_take_it(ops):
    lazy = LazyAdam(0.01, grad_clip=0.0, use_averages=True, average_every=4)
    weights = np.ones(SIZE, dtype="f")
    taken = weights
    for step in range(1, 30):
        lazy.update_parts(KEY, weights, gradient(range(N_ROWS), step), parts(ops, range(N_ROWS)))
        now = lazy.current_average(KEY, weights)
        if step < 4:
            assert now is None
            continue
        if step % 4 == 0:
            taken = now.copy()
        # Reading the average has changed nothing.
        assert lazy.averages[KEY].tobytes() == taken.tobytes()
        kept = ((1 + step) / (10 + step)) ** (step % 4)
        np.testing.assert_allclose(now, kept * taken + (1 - kept) * weights, rtol=1e-5)
        assert step % 4 == 0 or now.tobytes() != taken.tobytes()


def test_lazy_adam_clip_scale():
    assert LazyAdam(0.1, grad_clip=2.0).clip_scale(8.0) == 0.25
    assert LazyAdam(0.1, grad_clip=2.0).clip_scale(2.0) == 1.0
    assert LazyAdam(0.1, grad_clip=0.0).clip_scale(1e9) == 1.0


@pytest.mark.parametrize("gpu_id", [*BACKENDS, "compiled"])
def test_lazy_adam_survives_moments_of_two_workers(gpu_id):
    """One worker wrote a large first moment, and another one a small second moment."""
    with backend(-1 if gpu_id == "compiled" else gpu_id) as ops:
        used = get_dialog_ops(-1, "fast") if gpu_id == "compiled" else ops
        found = []
        for is_shared in (True, False):
            optimizer = LazyAdam(0.01, grad_clip=0.0)
            optimizer.is_shared = is_shared
            values = ops.xp.zeros(SIZE, "f")
            mom1, mom2 = optimizer.state_arrays(KEY, values)
            mom1 += 1.0
            mom2 += 1e-10
            optimizer.nr_update[KEY] = 100
            d = ops.asarray1f(1e-6 * gradient([1], 0))
            optimizer.update_parts(KEY, values, d, parts(ops, [1]), ops=used)
            found.append(float(abs(values).max()))
    shared, alone = found
    # The largest step of Adam with these decays, and the much larger step without the limit.
    assert 0.02 < shared < 0.01 * 7.3 < 100.0 < alone


@given(
    st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=40),
    st.sampled_from([(0.9, 0.999), (0.95, 0.999), (0.0, 0.9), (0.9, 0.81), (0.99, 0.9)]),
)
@settings(max_examples=100)
def test_lazy_adam_that_is_shared_is_lazy_adam_without_other_workers(gradients, decays):
    found = []
    for is_shared in (True, False):
        optimizer = LazyAdam(0.01, beta1=decays[0], beta2=decays[1], grad_clip=0.0)
        optimizer.is_shared = is_shared
        values = np.zeros(1, "f")
        for g in gradients:
            optimizer.update_parts(KEY, values, np.full(1, g, "f"), [Segment(0, 1)])
        found.append(values)
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)
