"""Arrays in .npy files of NumPy that are mapped into memory."""

import math
import mmap
from pathlib import Path
from typing import Optional

import numpy as np

from ..errors import DataError
from .array_file import DAMAGED, read_head
from .plain_file import open_plain, size_of

# Number of values to check at a time.
CHUNK = 1 << 20


class MappedFolder:
    """Map the .npy files of a folder into memory.

    folder (Path): Folder with the files.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def array(self, name: str, dtypes: str, width: int = 0) -> np.ndarray:
        """Map a file into memory, and return its array, which is read-only. Only the header of the
        file is read at once.

        name (str): Name of the file, without its suffix.
        dtypes (str): Kinds of types that the array may have (see ``numpy.dtype.kind``), such as
            "iu".
        width (int): Number of values per row; 0 for a one-dimensional array.
        RAISES (DataError): If the file is missing, truncated, or another kind of file.
        """
        try:
            with open_plain(self.folder / f"{name}.npy") as file:
                shape, in_columns, dtype = read_head(file, size_of(file))
                expected = (width,) if width else ()
                if dtype.kind not in dtypes or in_columns or not shape or shape[1:] != expected:
                    raise ValueError(f"it holds {dtype} of shape {shape}")
                if not math.prod(shape):
                    return np.zeros(shape, dtype=dtype)
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                # A plain array, because indexing an np.memmap takes five times as long.
                return np.frombuffer(mapped, dtype=dtype, offset=file.tell()).reshape(shape)
        except OSError as error:
            raise self.damaged(name, error.strerror or str(error)) from None
        except DAMAGED as error:
            raise self.damaged(name, " ".join(str(error).split())[:80]) from None

    def bounds(self, name: str, end: int) -> np.ndarray:
        """Return the array of a file that has the start of each of several slices, followed by the
        end of the last slice.

        name (str): Name of the file, without its suffix.
        end (int): Expected end of the last slice.
        RAISES (DataError): As ``array``, and if the array does not begin with 0 and end with
            ``end``.
        """
        bounds = self.array(name, "i")
        if not len(bounds) or bounds[0] != 0 or bounds[-1] != end:
            raise self.damaged(name, f"it does not end with {end:,}")
        return bounds

    def check(
        self,
        name: str,
        values: np.ndarray,
        least: int,
        most: Optional[int] = None,
        rise: Optional[int] = None,
    ) -> None:
        """Check that numbers are in range, because they are used as indices into another array.

        name (str): Name of the file with the numbers.
        values (np.ndarray): The numbers.
        least (int): Smallest number that is allowed.
        most (Optional[int]): Largest number that is allowed; None for no limit.
        rise (Optional[int]): Smallest difference between a number and the next one; None for no
            limit.
        RAISES (DataError): If a number or a difference is out of range.
        """
        for start in range(0, len(values), CHUNK):
            some = values[start : start + CHUNK + 1]
            if some.min() < least or (most is not None and some.max() > most):
                raise self.damaged(name, "a number out of range")
            if rise is not None and (np.diff(some) < rise).any():
                raise self.damaged(name, "its numbers do not increase")

    def damaged(self, name: str, found: str) -> DataError:
        """Return the error to raise for a damaged file.

        name (str): Name of the file, without its suffix.

        found (str): Description of the damage.
        """
        path = self.folder / f"{name}.npy"
        return DataError(path, f"is damaged ({found}). Remove its folder and build it again.")
