"""A GPU that is held until all work is queued, on the stand-in, where a kernel takes 1 ms."""

import math

import pytest

from tests.training.test_device_counts import cupy  # noqa: F401
from thincdialog.inspection.held_device import HeldDevice

pytestmark = pytest.mark.gpu


@pytest.fixture
def held(cupy):  # noqa: F811
    held = HeldDevice(cupy)
    held.fewest_turns, held._turns, held.most_turns = 1, 1, 8
    return held


def test_held_device_times_the_work_alone(cupy, held):  # noqa: F811
    X, done = cupy.ones((3,)), []

    def work():
        done.append(X + 1 + 2)

    cupy.ones((3,)), work()  # Allocates memory before it is timed.
    assert held.time(work) == pytest.approx(0.002) and len(done) == 2


def test_held_device_is_held_longer_if_work_may_have_been_slow(cupy, held):  # noqa: F811
    done = []

    def work():
        done.append(cupy.ones((3,)))
        if len(done) < 3:  # As if the kernel that holds the device had already ended.
            float(done[-1][0])

    assert held.time(work) == pytest.approx(0.001) and len(done) == 3
    held.time(work)
    assert len(done) == 4  # Held as long as the last time.


def test_held_device_has_no_times_of_work_that_waits(cupy, held):  # noqa: F811
    done = []

    def work():
        done.append(float(cupy.ones((3,))[0]))

    assert math.isnan(held.time(work)) and len(done) == 4
    assert math.isnan(held.time(work, lambda: True)) and len(done) == 5
