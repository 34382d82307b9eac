"""NumPy files in a saved model's folder, with errors that name the file."""

import struct
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import Any, Iterator

import numpy as np

from ..errors import ModelError

# What NumPy, and zipfile below it, raise for a file that is cut or not one of theirs.
_DAMAGED = (
    ValueError, KeyError, IndexError, TypeError, EOFError, MemoryError, RuntimeError, SyntaxError,
    TokenError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@contextmanager
def reading_arrays(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one clear error.

    RAISES (ModelError): If the file is missing, damaged, or not what it should be.
    """
    try:
        yield
    except OSError as error:
        raise ModelError(f"{path}  cannot be read: {error.strerror or error}.") from None
    except _DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"{path}  is damaged ({reason}). Save the model again.") from None


def read_array(path: Path) -> np.ndarray:
    """One array; nothing is unpickled.

    RAISES (ModelError): If the file is missing, damaged, or not a NumPy array.
    """
    with reading_arrays(path), path.open("rb") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def write_array(path: Path, array: np.ndarray) -> None:
    """Write one array as ``numpy.save`` does, but see what the disk says: that loses the last
    bytes without a word where there is no room for them.

    RAISES (OSError): If it cannot be written whole.
    """
    array = np.asarray(array, order="C")
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        data: Any = array.reshape(-1).view(np.uint8)
        file.write(data)
