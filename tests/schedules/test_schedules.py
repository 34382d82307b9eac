from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import Adam

from thincdialog.registry import registry

registry.ensure_populated()
NAMES = ["WarmupLinear", "WarmupCosine", "WarmupInverseSqrt"]
STEPS = st.tuples(st.integers(0, 20), st.integers(1, 60)).map(lambda n: (n[0], n[0] + n[1]))


def rates(name, n, *arguments, **options):
    schedule = registry.schedules.get(f"thincdialog.{name}.v1")(*arguments, **options)
    return np.array(list(islice(schedule, n)))


@given(STEPS)
@pytest.mark.parametrize("name", NAMES)
def test_schedules_warm_up_in_equal_steps_to_the_full_rate(name, steps):
    warmup, total = steps
    found = rates(name, warmup + 1, 0.5, warmup, total)
    np.testing.assert_allclose(found[:warmup], 0.5 * np.arange(1, warmup + 1) / max(1, warmup))
    assert found[warmup] == 0.5


@given(STEPS)
@pytest.mark.parametrize("name", NAMES)
def test_schedules_never_grow_after_the_warm_up_and_end_at_zero(name, steps):
    warmup, total = steps
    found = rates(name, total + 5, 0.5, warmup, total)
    assert (found[:total] > 0).all() and (found[total:] == 0).all()
    assert (np.diff(found[warmup:]) <= 0).all()


def test_schedules_closed_forms():
    after = np.arange(90)
    linear = rates("WarmupLinear", 100, 2.0, 10, 100)[10:]
    np.testing.assert_allclose(linear, 2 * (1 - after / 90))
    cosine = rates("WarmupCosine", 100, 2.0, 10, 100, final_share=0.1)[10:]
    np.testing.assert_allclose(cosine, 2 * (0.1 + 0.45 * (1 + np.cos(np.pi * after / 90))))
    root = rates("WarmupInverseSqrt", 100, 2.0, 10)[10:]
    np.testing.assert_allclose(root, 2 * np.sqrt(10 / (10 + after)))
    assert root[30] == 1.0


def test_schedules_cosine_stays_at_its_final_share():
    assert rates("WarmupCosine", 30, 1.0, 0, 10, final_share=0.25)[10:].tolist() == [0.25] * 20


def test_schedules_inverse_root_without_end_continues():
    assert (rates("WarmupInverseSqrt", 5000, 1.0, 4) > 0).all()


def test_schedules_inverse_root_falls_by_its_gamma():
    after = np.arange(300)
    root = rates("WarmupInverseSqrt", 310, 2.0, 10, gamma=100)[10:]
    np.testing.assert_allclose(root, 2 * np.sqrt(100 / (100 + after)))
    with pytest.raises(ValueError, match="gamma = 0, but it must be 1 or more"):
        rates("WarmupInverseSqrt", 1, 2.0, 10, gamma=0)


def test_schedules_drive_an_optimizer_of_thinc():
    schedule = registry.schedules.get("thincdialog.WarmupLinear.v1")(1.0, 2, 4)
    optimizer = Adam(schedule)
    found = []
    for _ in range(5):
        found.append(optimizer.learn_rate)
        optimizer.step_schedules()
    assert found == [0.5, 1.0, 1.0, 0.5, 0.0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rate, warmup, total", [(0.0, 1, 10), (1.0, -1, 10), (1.0, 10, 10)])
def test_schedules_out_of_range_is_refused_at_once(name, rate, warmup, total):
    with pytest.raises(ValueError, match="must"):
        registry.schedules.get(f"thincdialog.{name}.v1")(rate, warmup, total)
