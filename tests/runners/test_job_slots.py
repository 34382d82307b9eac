"""Slots that limit how many workers work at the same time, in one process or in several."""

import multiprocessing
import threading
import time

import pytest

from tests.processes import open_channels
from thincdialog.runners.job_slots import JobSlots


def work(slots, pipe):
    with slots:
        pipe.send("in")
        pipe.recv()
    pipe.send("out")


@pytest.mark.parametrize("at_once", [1, 2])
def test_job_slots_admit_no_more_than_the_limit(at_once):
    slots, lock, inside, most = JobSlots(at_once), threading.Lock(), [], []

    def go():
        for _ in range(20):
            with slots:
                with lock:
                    inside.append(1)
                    most.append(len(inside))
                time.sleep(0.0005)
                with lock:
                    inside.pop()

    threads = [threading.Thread(target=go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == at_once and len(most) == 80


@pytest.mark.slow
def test_job_slots_work_across_processes_and_leave_nothing_open():
    before = open_channels()
    spawning = multiprocessing.get_context("spawn")
    slots, (ours, theirs) = JobSlots(1), spawning.Pipe()
    process = spawning.Process(target=work, args=(slots, theirs), daemon=True)
    with slots:
        process.start()
        assert not ours.poll(1.0)
    assert ours.recv() == "in"
    ours.send("go")
    with slots:
        assert ours.recv() == "out"
    process.join()
    process.close()
    ours.close()
    theirs.close()
    with pytest.raises(RuntimeError):
        slots.__reduce__()
    del slots
    assert len(open_channels() - before) <= 1  # Python's resource tracker.
