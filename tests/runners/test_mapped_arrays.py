"""Memory that is shared by processes that are not related."""

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from tests.processes import limited
from thincdialog.errors import DialogError
from thincdialog.runners.mapped_arrays import MappedArrays

LAYOUT = [("a", (3,), "<f4"), ("b", (2, 2), "<i8"), ("large", (1 << 40,), "<f4")]
OTHER = """
from thincdialog.runners.mapped_arrays import MappedArrays, MappedMemory
mapped = MappedArrays.open(MappedMemory({path!r}, {size}, {mark!r}, {layout!r}))
mapped.arrays["b"][1, 0] = 7
print(mapped.arrays["a"].tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_named", [False, True])
def test_mapped_arrays_are_shared_with_another_process(is_named, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    # Of four terabytes, only the pages that are written to take up memory.
    layout = LAYOUT if not is_named else LAYOUT[:2]
    mapped = MappedArrays(layout, is_named)
    mapped.arrays["a"][:] = 1, 2, 3
    code = OTHER.format(**mapped.mapping._asdict())
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert said.stdout == "[1.0, 2.0, 3.0]\n", said.stderr
    assert mapped.arrays["b"].tolist() == [[0, 0], [7, 0]]
    assert len(list(tmp_path.iterdir())) == is_named
    mapped.forget()
    assert not list(tmp_path.iterdir())
    assert mapped.arrays["a"][0] == 1
    mapped.close()
    assert mapped.arrays["a"][0] == 1  # As long as the array is in use.


@pytest.mark.parametrize("is_named", [False, True])
def test_mapped_arrays_that_cannot_be_created_say_why(is_named, tmp_path, monkeypatch):
    with limited("RLIMIT_NOFILE", 0), pytest.raises(DialogError, match="Too many open files"):
        MappedArrays(LAYOUT[:2], is_named)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with limited("RLIMIT_FSIZE", 100), pytest.raises(DialogError, match="File too large.*TMPDIR"):
        MappedArrays(LAYOUT[:2], is_named)
    with limited("RLIMIT_FSIZE", 100):
        with pytest.raises(DialogError, match='Raise the limit .*, or set executor = "thread".$'):
            MappedArrays(LAYOUT[:2], is_named, 'set executor = "thread"')
    assert not list(tmp_path.iterdir())


def test_mapped_arrays_refuse_other_files(tmp_path):
    mapped = MappedArrays(LAYOUT[:2])
    other = tmp_path / "other"
    other.write_bytes(bytes(mapped.mapping.size))
    with pytest.raises(OSError):
        MappedArrays.open(mapped.mapping._replace(path=str(other)))
    handle = mapped._handle
    mapped.close()
    assert mapped.arrays["a"].dtype == numpy.dtype("f")
    with pytest.raises(OSError):
        os.fstat(handle)
        MappedArrays.open(mapped.mapping)


def add_one(mapped, place):
    mapped.arrays["a"][place] += 1


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.slow
def test_mapped_arrays_are_the_same_memory_in_a_process_that_they_are_given_to(is_named):
    mapped = MappedArrays(LAYOUT[:2], is_named)
    mapped.forget()  # The process gets the open file, and needs no path.
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=add_one, args=(mapped, 2))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert mapped.arrays["a"].tolist() == [0, 0, 1]


def test_mapped_arrays_can_be_sent_only_to_a_new_process():
    with pytest.raises(RuntimeError, match="MappedArrays objects should only be shared"):
        pickle.dumps(MappedArrays(LAYOUT[:2]))


@pytest.mark.slow
def test_mapped_arrays_free_their_file_with_the_last_array():
    gc.collect()
    before = descriptors()
    views = []
    for _ in range(5):
        mapped = MappedArrays(LAYOUT[:2])
        mapped.arrays["b"][:] = 1
        views.append(mapped.arrays["b"][1:])
    del mapped
    gc.collect()
    assert [view.sum() for view in views] == [2] * 5
    views.clear()
    gc.collect()
    assert descriptors() == before


@pytest.mark.parametrize("kind", ["RLIMIT_FSIZE", "RLIMIT_NOFILE"])
def test_mapped_arrays_beyond_a_limit_leave_nothing_open(kind):
    before = descriptors()
    with limited(kind, 4096 if kind == "RLIMIT_FSIZE" else 3), pytest.raises(DialogError):
        MappedArrays([("a", (100_000,), "<f4")])
    assert descriptors() == before


def descriptors():
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
