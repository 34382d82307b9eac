"""Memory that is shared by processes that are not related."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from tests.processes import limited
from thincdialog.errors import DialogError
from thincdialog.runners.shared_arrays import open_arrays, private_arrays, shared_arrays

LAYOUT = [("a", (3,), "<f4"), ("b", (2, 2), "<i8"), ("large", (1 << 40,), "<f4")]
OTHER = """
from thincdialog.runners.shared_arrays import SharedMemory, open_arrays
arrays = open_arrays(SharedMemory({path!r}, {layout!r}))
arrays["b"][1, 0] = 7
print(arrays["a"].tolist())
"""


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.slow)])
def is_named(request, tmp_path, monkeypatch):
    """Yield whether the memory is a temporary file, as on systems without ``memfd_create``."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if request.param:
        monkeypatch.delattr(os, "memfd_create")
    return request.param


@pytest.mark.slow
def test_shared_arrays_are_shared_with_another_process(is_named, tmp_path):
    # Of four terabytes, only the pages that are written to take up memory.
    layout = LAYOUT if not is_named else LAYOUT[:2]
    with shared_arrays(layout) as (memory, arrays):
        arrays["a"][:] = 1, 2, 3
        code = OTHER.format(**memory._asdict())
        env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
        assert said.stdout == "[1.0, 2.0, 3.0]\n", said.stderr
        assert arrays["b"].tolist() == [[0, 0], [7, 0]]
        assert len(list(tmp_path.iterdir())) == is_named
        opened = open_arrays(memory)
    assert not list(tmp_path.iterdir())
    opened["a"][0] = 5  # As long as the array is in use.
    assert arrays["a"].tolist() == [5, 2, 3]
    with pytest.raises(OSError):
        open_arrays(memory)


def test_shared_arrays_that_cannot_be_created_say_why(is_named, tmp_path):
    with limited("RLIMIT_NOFILE", 0), pytest.raises(DialogError, match="Too many open files"):
        shared_arrays(LAYOUT[:2]).__enter__()
    with limited("RLIMIT_FSIZE", 100), pytest.raises(DialogError, match="File too large.*TMPDIR"):
        shared_arrays(LAYOUT[:2]).__enter__()
    with limited("RLIMIT_FSIZE", 100):
        with pytest.raises(DialogError, match='Raise the limit .*, or set executor = "thread".$'):
            shared_arrays(LAYOUT[:2], 'set executor = "thread"').__enter__()
    assert not list(tmp_path.iterdir())


def test_shared_arrays_are_not_opened_in_files_of_another_size(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(bytes(100))
    with shared_arrays(LAYOUT[:2]) as (memory, _), pytest.raises(OSError):
        open_arrays(memory._replace(path=str(other)))


def test_private_arrays_are_zero_and_aligned():
    arrays = private_arrays(LAYOUT[:2])
    assert not arrays["a"].any() and arrays["b"].shape == (2, 2)
    assert arrays["b"].dtype == numpy.dtype("q")
    assert all(array.ctypes.data % 64 == 0 for array in arrays.values())


@pytest.mark.slow
def test_shared_arrays_free_their_file_with_the_last_array():
    gc.collect()
    before = descriptors()
    views = []
    for _ in range(5):
        with shared_arrays(LAYOUT[:2]) as (_, arrays):
            arrays["b"][:] = 1
            views.append(arrays["b"][1:])
    del arrays
    gc.collect()
    assert [view.sum() for view in views] == [2] * 5
    views.clear()
    gc.collect()
    assert descriptors() == before


@pytest.mark.parametrize("kind", ["RLIMIT_FSIZE", "RLIMIT_NOFILE"])
def test_shared_arrays_beyond_a_limit_leave_nothing_open(kind):
    before = descriptors()
    with limited(kind, 4096 if kind == "RLIMIT_FSIZE" else 3), pytest.raises(DialogError):
        shared_arrays([("a", (100_000,), "<f4")]).__enter__()
    assert descriptors() == before


def descriptors():
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
