"""What a watch of a GPU adds up."""

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


def test_device_watch_misses_nothing_that_another_thread_asks_for(changing_threads_often):
    watch, n_notes = DeviceWatch(lambda: 0.0, lambda first, last: 0.0), 20_000

    def copy_ahead():
        for number in range(n_notes):
            watch.note("from_host", 4, f"a.py:{number % 500}")

    copying = threading.Thread(target=copy_ahead)
    copying.start()
    while copying.is_alive():
        watch.keep()
    watch.keep()
    assert watch.asked.total() == n_notes and watch.n_bytes == {"from_host": 4 * n_notes}
