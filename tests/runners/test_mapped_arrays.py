"""Memory that processes share which have nothing in common."""

import os
import subprocess
import sys

import numpy
import pytest

from tests.processes import limited, slow
from thincdialog.errors import DialogError
from thincdialog.runners.mapped_arrays import MappedArrays

LAYOUT = [("a", (3,), "<f4"), ("b", (2, 2), "<i8"), ("large", (1 << 40,), "<f4")]
OTHER = """
from thincdialog.runners.mapped_arrays import MappedArrays, MappedMemory
mapped = MappedArrays.open(MappedMemory({path!r}, {size}, {mark!r}, {layout!r}))
mapped.arrays["b"][1, 0] = 7
print(mapped.arrays["a"].tolist())
"""


@pytest.mark.parametrize("is_named", [slow(False), True])
def test_mapped_arrays_of_another_process_are_the_same(is_named, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    # Four terabytes take up what is written to.
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
    assert mapped.arrays["a"][0] == 1  # As long as somebody holds it.


@pytest.mark.parametrize("is_named", [False, True])
def test_mapped_arrays_that_cannot_be_say_why(is_named, tmp_path, monkeypatch):
    with limited("RLIMIT_NOFILE", 0), pytest.raises(DialogError, match="Too many open files"):
        MappedArrays(LAYOUT[:2], is_named)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with limited("RLIMIT_FSIZE", 100), pytest.raises(DialogError, match="File too large.*TMPDIR"):
        MappedArrays(LAYOUT[:2], is_named)
    with limited("RLIMIT_FSIZE", 100):
        with pytest.raises(DialogError, match='Raise the limit .*, or set executor = "thread".$'):
            MappedArrays(LAYOUT[:2], is_named, 'set executor = "thread"')
    assert not list(tmp_path.iterdir())


def test_mapped_arrays_nothing_else_is_taken_for_them(tmp_path):
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
