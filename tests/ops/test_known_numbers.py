"""What is derived of a batch's numbers, and of those of the batches before it."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, current_thread, main_thread

import numpy as np
import pytest

from tests.ops.array_backends import new_ops
from thincdialog.ops.known_numbers import derived, on_host, put

pytestmark = pytest.mark.gpu


def joined(*arrays):
    return (np.concatenate(arrays),)


@pytest.fixture
def ops():
    return new_ops(0)


def packed_of(ops, n, before=()):
    """A batch of its own numbers, for what was asked of those before."""
    known = ops.known_numbers
    array = np.arange(n, dtype="i") + 100 * n
    return array, known.pack("some", [array], known.asked(), (0, 0, 0), before=before)


def test_known_numbers_that_were_asked_stay_as_another_thread_reads_them(ops):
    """A step may derive more of its batches while the next one is prepared."""
    (first,) = put(ops, "some", np.arange(3, dtype="i"))
    asked = ops.known_numbers.asked()
    derived(ops, joined, first, first)
    assert asked == {"some": {}} and len(ops.known_numbers.asked()["some"]) == 1


def test_known_numbers_of_several_batches_are_derived_ahead(ops):
    known = ops.known_numbers
    first, second = (put(ops, "some", np.arange(n, dtype="i"))[0] for n in (2, 3))
    derived(ops, joined, first, second)
    a, packed_a = packed_of(ops, 4)
    b, packed_b = packed_of(ops, 5, before=[packed_a.on_host])
    (on_device_a,), (on_device_b,) = known.use(packed_a), known.use(packed_b)
    n_ready = len(known._ready)
    (both,) = derived(ops, joined, on_device_a, on_device_b)
    assert n_ready == len(known._ready) == 1
    assert both.base is on_device_b.base  # It came in the same copy.
    assert on_host(ops, both).tolist() == ops.to_numpy(both).tolist() == [*a, *b]


def test_known_numbers_batches_that_come_in_another_order_are_not_mistaken(ops):
    known = ops.known_numbers
    first, second = (put(ops, "some", np.arange(n, dtype="i"))[0] for n in (2, 3))
    derived(ops, joined, first, second)
    _, packed_a = packed_of(ops, 4)
    b, packed_b = packed_of(ops, 5, before=[packed_a.on_host])
    known.use(packed_a)
    other = np.arange(7, dtype="i")
    (on_device_other,) = put(ops, "others", other)  # Something comes between.
    (on_device_b,) = known.use(packed_b)
    (both,) = derived(ops, joined, on_device_other, on_device_b)
    assert ops.to_numpy(both).tolist() == [*other, *b]


def test_known_numbers_of_a_batch_long_ago_are_derived_when_they_are_asked_for(ops):
    old = np.arange(3, dtype="i")
    (on_device_old,) = put(ops, "old", old)
    for n in range(100):
        (newest,) = put(ops, "some", np.arange(n + 1, dtype="i"))
        (both,) = derived(ops, joined, on_device_old, newest)
        assert ops.to_numpy(both).tolist() == [*old, *range(n + 1)]
        assert on_host(ops, both).tolist() == [*old, *range(n + 1)]


def test_known_numbers_of_two_threads_are_kept_apart(ops):
    """One of them derives something while the other one puts a batch in the same role."""
    is_asked, is_midst, is_derived = Event(), Event(), Event()

    def meeting(array):
        if current_thread() is main_thread():
            is_midst.set()
            is_derived.wait(10)
        return (array * 2,)

    def other_thread():
        (array,) = put(ops, "some", np.arange(4, dtype="i"))
        (twice,) = derived(ops, meeting, array)
        is_asked.set()
        is_midst.wait(10)
        (both,) = derived(ops, joined, array, twice)
        is_derived.set()
        return ops.to_numpy(both).tolist()

    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(other_thread)
        is_asked.wait(10)
        (array,) = put(ops, "some", np.arange(3, dtype="i"))
        is_midst.set()
        assert other.result() == [0, 1, 2, 3, 0, 2, 4, 6]
    (both,) = derived(ops, joined, array, array)
    assert ops.to_numpy(both).tolist() == [0, 1, 2, 0, 1, 2]
    # What another thread put is copied back, as this one does not know it.
    with ThreadPoolExecutor(1) as threads:
        (array,) = threads.submit(put, ops, "some", np.arange(5, dtype="i")).result()
    assert on_host(ops, array).tolist() == [0, 1, 2, 3, 4]
    (both,) = derived(ops, joined, array, array)
    assert ops.to_numpy(both).tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
