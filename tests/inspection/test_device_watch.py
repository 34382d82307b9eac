"""The calls that a watch of a GPU adds up."""

import sys
import threading

import pytest

from thincdialog.inspection.device_watch import DeviceWatch


@pytest.fixture
def changing_threads_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("is_kept", [lambda step: True, lambda step: step % 4 == 3])
def test_device_watch_misses_nothing_that_another_thread_asks_for(changing_threads_often, is_kept):
    """Another thread may call within steps that are kept or not, or between steps. If some steps
    are not kept, their share of its calls is not, either."""
    watch, n_notes, n_kept = DeviceWatch(lambda: 0.0, lambda first, last: 0.0), 20_000, 0

    def copy_ahead():
        for number in range(n_notes):
            watch.note("from_host", 4, f"a.py:{number % 500}")

    copying = threading.Thread(target=copy_ahead)
    copying.start()
    while copying.is_alive() or watch.n_steps % 4:
        with watch.step():
            watch.note("from_host", 1, "b.py:1")
        if is_kept(watch.n_steps - 1):
            watch.keep()
            n_kept += 1
    watch.keep_elsewhere(n_kept)
    here = sum(times for asked, times in watch.asked.items() if asked.line == "b.py:1")
    assert here == n_kept
    share = n_kept / watch.n_steps
    assert share == (1 if is_kept(0) else 0.25)
    assert sum(watch.asked.values()) - here == pytest.approx(n_notes * share)
    assert watch.n_bytes == {"from_host": pytest.approx(4 * n_notes * share + n_kept)}
