"""What Adam's settings become with several workers."""

import pytest
from thinc.api import SGD, Adam, RAdam

from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.shared_state import StepsAhead
from thincdialog.optimizers.sparse_adagrad import SparseAdagrad
from thincdialog.optimizers.sparse_sgd import SparseSGD
from thincdialog.optimizers.stale_steps import describe_stale, stale_settings


def settings(optimizer):
    return StepsAhead(optimizer, (0, "parameters")).now()


@pytest.mark.parametrize(
    "n, rate, b1",
    [(1, 1.0, 0.9), (2, 2**-0.75, 0.8), (4, 4**-0.75, 0.6), (8, 8**-0.75, 0.2),
     (16, 0.125, 0.9 / 16)],
)  # fmt: skip
@pytest.mark.parametrize("make", [Adam, RAdam, LazyAdam])
def test_adam_gets_shorter_steps_and_less_momentum(make, n, rate, b1):
    optimizer = make(0.002, L2=0.01)
    known = settings(optimizer)
    expected = {**known, "learn_rate": 0.002 * rate, "b1": pytest.approx(b1)}
    assert stale_settings(known, n) == pytest.approx(expected)
    assert settings(optimizer) == known  # The schedules' are left as they are.


def test_one_worker_changes_no_bit():
    known = settings(LazyAdam(0.0013, beta1=0.87))
    assert stale_settings(known, 1) == known
    assert describe_stale(known, 1) == ""


def test_without_momentum_there_is_none_to_lose():
    assert stale_settings(settings(LazyAdam(0.002, beta1=0.0)), 4)["b1"] == 0.0


@pytest.mark.parametrize("make", [SGD, SparseSGD, SparseAdagrad])
def test_others_stay_as_they_are(make):
    known = settings(make(0.1))
    assert stale_settings(known, 4) == known
    assert describe_stale(known, 4) == ""


def test_a_rate_of_zero_is_described_by_its_factor():
    line = describe_stale(settings(LazyAdam(0.0)), 4)
    assert line == (
        "[hogwild] 4 workers at once: Adam's learn_rate times 0.354, beta1 0.6 for 0.9: "
        "gradients are some steps old"
    )
