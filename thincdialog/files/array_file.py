"""Read and write the NumPy files of a saved model, with errors that name the file."""

import math
import struct
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Collection, Dict, Iterator, Optional, Tuple

import numpy as np

from ..errors import ModelError
from .plain_file import open_plain, size_of

# Errors that NumPy and zipfile (which NumPy uses) raise for a truncated file, or for a file of
# another format.
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
    """Turn any error while a file is read into a ``ModelError`` that names the file.

    RAISES (ModelError): If the file is missing, damaged, or of another format.
    """
    try:
        yield
    except OSError as error:
        raise ModelError(f"{path}  cannot be read: {error.strerror or error}.") from None
    except DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"{path}  is damaged ({reason}). Save the model again.") from None


def read_array(path: Path) -> np.ndarray:
    """Read an array, without unpickling and without allocating more memory than the file's size.

    RAISES (ModelError): If the file is missing, damaged, or not a NumPy array of numbers.
    """
    with reading_arrays(path), open_plain(path) as file:
        return _read(file, size_of(file))


def read_arrays(path: Path, names: Optional[Collection[str]] = None) -> Dict[str, np.ndarray]:
    """Read the arrays of a file that ``numpy.savez`` wrote, with the checks of ``read_array``.

    names (Optional[Collection[str]]): Names of the arrays to read; None for all.
    RETURNS (Dict[str, np.ndarray]): The arrays by their names.
    RAISES (ModelError): As ``read_array``.
    """
    with reading_arrays(path), open_plain(path) as file, zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        # Files in an archive may overlap or be compressed. Then they can take more memory than the
        # archive's size.
        if sum(part.file_size for part in parts) > size_of(file):
            raise ValueError("its arrays are larger than the file")
        arrays = {}
        for part in parts:
            name = part.filename.removesuffix(".npy")
            if names is None or name in names:
                with archive.open(part) as stream:
                    arrays[name] = _read(stream, part.file_size)
        return arrays


def n_numbers(path: Path) -> int:
    """Return the number of values of an array, from its header and the size of the file.

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

    size (int): Number of bytes in the stream.
    RETURNS (Tuple[Tuple[int, ...], bool, np.dtype]): The shape; whether the values are in column
        order (Fortran); and the type.
    RAISES (ValueError): If the array is larger or smaller than the stream, or does not hold
        numbers.
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
    """Write an array in the format of ``numpy.save``. Unlike ``numpy.save``, raise an error if the
    disk has no space for the last bytes.

    RAISES (OSError): If the array cannot be written completely.
    """
    with path.open("wb") as file:
        write_head(file, array.dtype, array.shape)
        append_rows(file, array)


def write_head(file: IO[bytes], dtype: "np.dtype[Any]", shape: Tuple[int, ...]) -> None:
    """Write the header of an array, whose rows can then be appended."""
    descr = np.lib.format.dtype_to_descr(dtype)
    about = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)


def append_rows(file: IO[bytes], rows: np.ndarray) -> None:
    """Append rows of an array to its file.

    RAISES (OSError): If they cannot be written completely.
    """
    data: Any = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
    file.write(data)
