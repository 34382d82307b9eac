"""Files of arrays: they have the bytes of ``numpy.save``, and a full disk is an error."""

import io

import numpy as np
import pytest

from tests.processes import limited
from thincdialog.errors import DataError, ModelError
from thincdialog.files.array_file import read_array, write_array
from thincdialog.files.flat_array import MappedFolder

ARRAYS = [
    np.arange(1000, dtype="f"),
    np.zeros((0,), dtype="f"),
    np.zeros((3, 0), dtype="i8"),
    np.array(2.5),
    np.arange(24).reshape(2, 3, 4)[:, ::-1],
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
]


@pytest.mark.parametrize("array", ARRAYS, ids=range(len(ARRAYS)))
def test_array_file_is_as_numpy_saves_it(tmp_path, array):
    write_array(tmp_path / "a.npy", array)
    expected = io.BytesIO()
    np.save(expected, np.asarray(array, order="C"))
    assert (tmp_path / "a.npy").read_bytes() == expected.getvalue()
    read = read_array(tmp_path / "a.npy")
    assert read.dtype == array.dtype and read.shape == array.shape
    assert np.array_equal(read, array)


@pytest.mark.parametrize("n_missing", [1, 64, 3000])
def test_array_file_on_a_full_disk_is_an_error(tmp_path, n_missing):
    array = np.arange(1000, dtype="f")
    with limited("RLIMIT_FSIZE", 128 + array.nbytes - n_missing), pytest.raises(OSError):
        write_array(tmp_path / "a.npy", array)
    with limited("RLIMIT_FSIZE", 128 + array.nbytes):
        write_array(tmp_path / "a.npy", array)
    assert read_array(tmp_path / "a.npy").tolist() == array.tolist()


@pytest.mark.parametrize(
    "read, error",
    [
        (lambda folder: read_array(folder / "a.npy"), ModelError),
        (lambda folder: MappedFolder(folder).array("a", "i", 4), DataError),
    ],
    ids=["read", "mapped"],
)
def test_array_file_with_any_byte_of_its_header_changed(tmp_path, read, error):
    """NumPy reads headers with Python's own parser, which raises many kinds of errors."""
    path, n_told = tmp_path / "a.npy", 0
    write_array(path, np.arange(12, dtype="<i8").reshape(3, 4))
    good = path.read_bytes()
    for place in range(128):
        for letter in b"(':1":
            path.write_bytes(good[:place] + bytes([letter]) + good[place + 1 :])
            try:
                assert read(tmp_path).size == 12
            except error as told:
                assert str(told).startswith(f"{path}  is damaged (") and "\n" not in str(told)
                n_told += 1
    assert n_told > 200
