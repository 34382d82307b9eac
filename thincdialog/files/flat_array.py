"""Arrays in .npy files of NumPy that grow while they are written, and are mapped for reading."""

import io
import mmap
import os
import struct
from pathlib import Path
from typing import Any, Tuple

import numpy as np
from numpy.lib.format import read_array_header_1_0

from ..errors import DataError
from .array_file import DAMAGED
from .plain_file import open_plain, size_of

# Bytes before the first value, as NumPy writes them for arrays of any length.
HEADER = 128
_MAGIC = b"\x93NUMPY\x01\x00"


class GrowingArray:
    """Append rows to a .npy file. Its header, with the number of rows, is written at the end.

    path (Path): The file.
    dtype (str): Type of the values.
    width (int): Number of values per row; 0 for a one-dimensional array.
    n_rows (int): Number of rows to keep of an existing file; the rest is cut off.
    """

    def __init__(self, path: Path, dtype: str, width: int = 0, n_rows: int = 0):
        self.path, self.dtype, self.width = path, np.dtype(dtype), width
        self.n_rows = n_rows
        self._file = path.open("r+b" if path.exists() else "w+b")
        end = self.n_bytes
        self._file.truncate(end)
        self._file.seek(end)

    @property
    def n_bytes(self) -> int:
        """Size of the file in bytes, including the header."""
        return HEADER + self.n_rows * self.dtype.itemsize * max(1, self.width)

    def append(self, values: Any) -> None:
        """Add rows after the last one."""
        rows: Any = np.ascontiguousarray(values, dtype=self.dtype)
        if len(rows):
            self._file.write(rows.reshape(-1).view(np.uint8))
            self.n_rows += len(rows)

    def sync(self) -> None:
        """Flush all rows to the disk, and wait for it."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Write the header, and close the file."""
        shape = (self.n_rows, self.width) if self.width else (self.n_rows,)
        about = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        text = repr(about).encode().ljust(HEADER - len(_MAGIC) - 3) + b"\n"
        self._file.seek(0)
        self._file.write(_MAGIC + struct.pack("<H", len(text)) + text)
        self.sync()
        self._file.close()

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()


class MappedFolder:
    """Map the .npy files of a folder into memory.

    folder (Path): Folder with the files.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def array(self, name: str, dtypes: str, width: int = 0) -> np.ndarray:
        """Return the read-only array of a file. Only its header is read yet.

        name (str): Name of the file, without its suffix.
        dtypes (str): Kinds of dtypes that the array may have, such as "iu".
        width (int): Number of values per row; 0 for a one-dimensional array.
        RAISES (DataError): If the file is missing, truncated, or another kind of file.
        """
        path = self.folder / f"{name}.npy"
        try:
            with open_plain(path) as file:
                dtype, shape = _header(path, file.read(HEADER))
                n_bytes = dtype.itemsize
                for size in shape:
                    n_bytes *= size
                is_good = dtype.kind in dtypes and shape[1:] == ((width,) if width else ())
                if not is_good or size_of(file) != HEADER + n_bytes:
                    raise damaged(path, f"{size_of(file):,} bytes of {dtype}, {shape}")
                if not n_bytes:
                    return np.zeros(shape, dtype=dtype)
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise damaged(path, error.strerror or str(error)) from None
        # A plain array, because indexing an np.memmap takes five times as long.
        return np.frombuffer(mapped, dtype=dtype, offset=HEADER).reshape(shape)


def damaged(path: Path, found: str) -> DataError:
    """Return the error for a file of a store that is not as it was written.

    found (str): Description of the damage.
    """
    return DataError(path, f"is damaged ({found}). Remove its folder and build it again.")


def _header(path: Path, head: bytes) -> Tuple[np.dtype, Tuple[int, ...]]:
    try:
        if head[: len(_MAGIC)] != _MAGIC or len(head) < HEADER:
            raise ValueError("no header of NumPy's")
        text = io.BytesIO(head[len(_MAGIC) : HEADER])
        shape, is_fortran, dtype = read_array_header_1_0(text, max_header_size=HEADER)
        if is_fortran or dtype.kind not in "iuf":
            raise ValueError(f"{dtype} is not what it should hold")
        if not all(type(size) is int and 0 <= size < 1 << 60 for size in shape) or not shape:
            raise ValueError(f"shape {shape}")
        return dtype, shape
    except DAMAGED as error:
        raise damaged(path, " ".join(str(error).split())[:80]) from None
