import gc
import multiprocessing
import os
import pickle
from pathlib import Path

import numpy
import pytest

from tests.processes import limited
from thincdialog.errors import DialogError
from thincdialog.runners.shared_arrays import ALIGNMENT, SharedArrays


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0


def add_one(shared, place: int) -> None:
    shared.arrays["values"][place] += 1
    shared.arrays["steps"][...] = 7


def test_shared_arrays_hold_what_they_are_given():
    given = {
        "values": numpy.arange(5, dtype="f"),
        "table": numpy.ones((3, 4), dtype="f"),
        "steps": numpy.array(3, dtype="int64"),
        "none": numpy.zeros((0, 4), dtype="f"),
    }
    shared = SharedArrays(given)
    for name, array in given.items():
        numpy.testing.assert_array_equal(shared.arrays[name], array)
        assert shared.arrays[name].dtype == array.dtype
        assert shared.arrays[name].ctypes.data % ALIGNMENT == 0 or not array.size
    given["values"][0] = 100
    assert shared.arrays["values"][0] == 0
    shared.arrays["values"][:] = 2
    assert shared.arrays["table"].sum() == 12
    assert SharedArrays({}).arrays == {}


def test_shared_arrays_are_the_same_memory_in_a_process():
    shared = SharedArrays({"values": numpy.zeros(4, dtype="f"), "steps": numpy.array(0)})
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=add_one, args=(shared, 2))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert shared.arrays["values"].tolist() == [0, 0, 1, 0]
    assert shared.arrays["steps"] == 7


def test_shared_arrays_go_nowhere_but_to_a_new_process():
    with pytest.raises(RuntimeError, match="SharedArrays objects should only be shared"):
        pickle.dumps(SharedArrays({"values": numpy.zeros(4, dtype="f")}))


def test_shared_arrays_outlive_the_object_and_are_freed_with_the_last():
    gc.collect()
    before = descriptors()
    views = []
    for _ in range(5):
        shared = SharedArrays({"values": numpy.ones(1000, dtype="f")})
        views.append(shared.arrays["values"][10:20].reshape(2, 5))
    del shared
    gc.collect()
    assert [view.sum() for view in views] == [10.0] * 5
    views.clear()
    gc.collect()
    assert descriptors() == before


def test_shared_arrays_work_without_memfd(monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    shared = SharedArrays({"values": numpy.arange(3, dtype="f")})
    assert shared.arrays["values"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["RLIMIT_FSIZE", "RLIMIT_NOFILE"])
def test_shared_arrays_beyond_a_limit_say_so(kind):
    before = descriptors()
    with limited(kind, 4096 if kind == "RLIMIT_FSIZE" else 3):
        with pytest.raises(DialogError, match="^400,000 bytes .* Raise the limit .ulimit -a shows"):
            SharedArrays({"values": numpy.zeros(100_000, dtype="f")})
    assert descriptors() == before
