"""NumPy files in a saved model's folder, with errors that name the file."""

import math
import struct
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Dict, Iterator, Tuple

import numpy as np

from ..errors import ModelError
from .plain_file import open_plain, size_of

# Errors of NumPy, and of zipfile, which it uses, for a truncated file or one of another format.
DAMAGED = (
    ValueError, KeyError, IndexError, TypeError, EOFError, MemoryError, RuntimeError, SyntaxError,
    TokenError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@contextmanager
def reading_arrays(path: Path) -> Iterator[None]:
    """Turn any error while a file is read into one clear error.

    RAISES (ModelError): If the file is missing, damaged, or not what it should be.
    """
    try:
        yield
    except OSError as error:
        raise ModelError(f"{path}  cannot be read: {error.strerror or error}.") from None
    except DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"{path}  is damaged ({reason}). Save the model again.") from None


def read_array(path: Path) -> np.ndarray:
    """Read one array, without unpickling and without allocating more memory than the file's size.

    RAISES (ModelError): If the file is missing, damaged, or not a NumPy array of numbers.
    """
    with reading_arrays(path), open_plain(path) as file:
        return _read(file, size_of(file))


def read_arrays(path: Path) -> Dict[str, np.ndarray]:
    """Read the arrays of a file that ``numpy.savez`` wrote, by name, as ``read_array`` does."""
    with reading_arrays(path), open_plain(path) as file, zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        # Files in an archive may overlap or be compressed; they can then exceed its size.
        if sum(part.file_size for part in parts) > size_of(file):
            raise ValueError("its arrays come to more than the file")
        arrays = {}
        for part in parts:
            with archive.open(part) as stream:
                arrays[part.filename.removesuffix(".npy")] = _read(stream, part.file_size)
        return arrays


def n_numbers(path: Path) -> int:
    """Return the number of values in an array, from its header and the size of the file.

    RAISES (ModelError): As ``read_array``.
    """
    with reading_arrays(path), open_plain(path) as file:
        return math.prod(read_head(file, size_of(file))[0])


def _read(stream: IO[bytes], size: int) -> np.ndarray:
    shape, in_columns, dtype = read_head(stream, size)
    numbers: Any = np.empty(math.prod(shape), dtype=dtype)
    if stream.readinto(numbers.view(np.uint8)) != numbers.nbytes:  # type: ignore[attr-defined]
        raise EOFError("it is cut off")
    return numbers.reshape(shape, order="F" if in_columns else "C")


def read_head(stream: IO[bytes], size: int) -> Tuple[Tuple[int, ...], bool, np.dtype]:
    """Read the shape, order and type of an array, and check that it fills the stream exactly.

    size (int): Bytes in the stream.
    RAISES (ValueError): If the array is larger or smaller, or does not hold numbers.
    """
    version = np.lib.format.read_magic(stream)
    if version not in _READERS:
        raise ValueError(f"its format is {version}")
    shape, in_columns, dtype = _READERS[version](stream)
    if dtype.kind not in "biuf" or min(shape, default=0) < 0:
        raise ValueError(f"it holds {dtype} of shape {shape}, expected numbers")
    n_bytes, found = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if n_bytes != found:
        raise ValueError(f"it holds {found:,} bytes of numbers, expected {n_bytes:,}")
    return shape, in_columns, dtype


def write_array(path: Path, array: np.ndarray) -> None:
    """Write one array as ``numpy.save`` does, but with errors of the disk: ``numpy.save`` raises
    none if there is no space for the last bytes.

    RAISES (OSError): If the array cannot be written completely.
    """
    array = np.asarray(array, order="C")
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        data: Any = array.reshape(-1).view(np.uint8)
        file.write(data)
