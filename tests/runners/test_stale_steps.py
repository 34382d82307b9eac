"""How Adam's settings are adapted to several workers."""

import numpy as np
import pytest
from thinc.api import SGD, Adam, Optimizer, RAdam

from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.row_sparse import Segment
from thincdialog.optimizers.shared_state import settings_of
from thincdialog.optimizers.sparse_sgd import SparseAdagrad, SparseSGD
from thincdialog.runners.stale_steps import describe_stale, stale_settings


@pytest.mark.parametrize(
    "n, rate, b1",
    [(1, 1.0, 0.9), (2, 2**-0.75, 0.8), (4, 4**-0.75, 0.6), (8, 8**-0.75, 0.2),
     (16, 0.125, 0.9 / 16)],
)  # fmt: skip
@pytest.mark.parametrize("make", [Adam, RAdam])
def test_thincs_adam_gets_shorter_steps_and_less_momentum(make, n, rate, b1):
    optimizer = make(0.002, L2=0.01)
    known = settings_of(optimizer)
    expected = {**known, "learn_rate": 0.002 * rate, "b1": pytest.approx(b1)}
    assert stale_settings(known, n) == pytest.approx(expected)
    assert settings_of(optimizer) == known  # The optimizer itself is unchanged.


@pytest.mark.parametrize(
    "n, b1, nu", [(2, 0.95, 0.868421), (4, 0.975, 0.871795), (16, 0.99375, 0.874214)]
)
def test_lazy_adam_looks_ahead(n, b1, nu):
    optimizer = LazyAdam(0.002, L2=0.01)
    known = settings_of(optimizer)
    expected = {**known, "learn_rate": 0.002 / n**0.5, "b1": b1, "nu": nu}
    assert stale_settings(known, n) == pytest.approx(expected, abs=1e-6)
    assert settings_of(optimizer) == known and known["nu"] == 1.0


def walk(rate, n_workers, b1, nu=1.0):
    """Minimise a parabola with gradients that are `n_workers` - 1 steps old, and a second moment of
    1. Return the final distance from the minimum."""
    key, w = (0, "parameters"), np.ones(1, dtype="f")
    optimizer = LazyAdam(rate, beta1=b1, beta2=1 - 1e-12, grad_clip=0.0, L2=0.0)
    optimizer.nu, optimizer.nr_update[key] = nu, 10**14
    optimizer.mom1[key], optimizer.mom2[key] = np.zeros(1, dtype="f"), np.ones(1, dtype="f")
    seen = [w.copy()] * n_workers
    for _ in range(2000):
        optimizer.update_parts(key, w, seen[0], [Segment(0, 1)])
        seen = [*seen[1:], w.copy()]
        if abs(w[0]) > 1e3:
            break
    return abs(float(w[0]))


@pytest.mark.parametrize("n, rate", [(2, 3.0), (4, 1.2), (8, 0.5)])
def test_looking_ahead_is_stable_at_higher_rates_than_less_momentum_is(n, rate):
    ahead = stale_settings(settings_of(LazyAdam(1.0)), n)
    assert walk(rate, n, ahead["b1"], ahead["nu"]) < 1e-3
    assert walk(rate, n, ahead["b1"]) > 1e2
    assert walk(rate, n, stale_settings(settings_of(Adam(1.0)), n)["b1"]) > 1e2
    # Without a delay, the settings need no change.
    assert walk(rate, 1, 0.9) < 1e-3


class OwnSteps(LazyAdam):
    """A custom subclass, whose steps may not use nu."""


class OtherNu(Optimizer):
    """An optimizer whose nu means something else."""

    nu = None


@pytest.mark.parametrize("make", [OwnSteps, OtherNu])
def test_custom_optimizers_get_less_momentum(make):
    known, thincs = settings_of(make(0.002)), settings_of(Adam(0.002))
    assert "nu" not in known
    assert stale_settings(known, 4)["b1"] == stale_settings(thincs, 4)["b1"]


@pytest.mark.parametrize("n, b1", [(2, 0.0), (2, 0.42), (4, 0.3), (16, 0.2)])
def test_lazy_adam_with_little_momentum_does_not_look_ahead(n, b1):
    assert b1 or stale_settings(settings_of(Adam(0.002, beta1=b1)), n)["b1"] == 0.0
    known = settings_of(LazyAdam(0.002, beta1=b1))
    assert stale_settings(known, n) == {
        **stale_settings(settings_of(Adam(0.002, beta1=b1)), n),
        "nu": 1.0,
    }
    assert "nu" not in describe_stale(known, n)


@pytest.mark.parametrize(
    "make, n", [(SGD, 4), (SparseSGD, 4), (SparseAdagrad, 4), (Adam, 1), (LazyAdam, 1)]
)
def test_other_optimizers_and_one_worker_are_unchanged(make, n):
    known = settings_of(make(0.0013))
    assert stale_settings(known, n) == known
    assert describe_stale(known, n) == ""


def test_a_rate_of_zero_is_described_by_its_factor():
    assert describe_stale(settings_of(Adam(0.0)), 4) == (
        "[runner] 4 workers run at once: gradients are some steps old, so Adam's learn_rate is "
        "multiplied by 0.354, and its beta1 is 0.6 instead of 0.9. thincdialog.LazyAdam.v1 "
        "suffers less from this"
    )
    assert describe_stale(settings_of(LazyAdam(0.0)), 4) == (
        "[runner] 4 workers run at once: gradients are some steps old, so Adam's learn_rate is "
        "multiplied by 0.5, and its beta1 is 0.975 instead of 0.9, nu 0.872"
    )
