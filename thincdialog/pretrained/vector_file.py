"""Keep the vectors of texts on disk, by key, so that later runs need not compute them.

    FOLDER/ENCODER.vectors    for each text, a key of 16 bytes, a vector of float32, and the CRC-32
                              of both

Processes append to the same file, one at a time. If a process is killed, only the rows that it was
writing are lost.
"""

import fcntl
import os
import zlib
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy as np

from ..errors import OutputError
from ..files.whole_file import writing

_SUFFIX = ".vectors"
_REMEDY = "Free some space, or set 'vectors' in the encoder's section to another folder."


def default_folder() -> Path:
    """Return the folder of the vectors if the config names none. It is in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "thincdialog" / "vectors"


class VectorFile:
    """Read and write the vectors of one encoder.

    folder (Path): Folder of the vectors of all encoders; created at the first write.
    encoder (str): Name of the encoder's file without its suffix.
    width (int): Width of a vector.
    max_bytes (int): Largest size of the vectors of all encoders together. If they are larger, the
        files of the encoders that were used least recently are removed.
    """

    def __init__(self, folder: Path, encoder: str, width: int, max_bytes: int):
        self.path, self.max_bytes = folder / f"{encoder}{_SUFFIX}", max_bytes
        row = [("key", "V16"), ("vector", "<f4", (width,)), ("check", "<u4")]
        self._rows: Any = np.empty(0, row)
        # Key to the number of the row.
        self._numbers: Dict[bytes, int] = {}
        with suppress(OSError, ValueError):  # There is no file yet, or no complete row.
            self._map()

    def get(self, key: bytes) -> Optional[np.ndarray]:
        """Return a vector; None if it is missing or damaged."""
        number = self._numbers.get(key, len(self._rows))
        # There is no such row if another process has removed the file and begun another one.
        for _, vector, check in self._rows[number : number + 1]:
            if zlib.crc32(vector, zlib.crc32(key)) == check:
                return np.array(vector)
        return None

    def add(self, keys: List[bytes], vectors: np.ndarray) -> None:
        """Write the vectors of new keys.

        RAISES (OutputError): If the vectors cannot be written, or exceed the size of the folder.
        """
        rows = np.empty(len(keys), self._rows.dtype)
        rows["key"], rows["vector"] = np.frombuffer(b"".join(keys), "V16"), vectors
        pairs = zip(keys, rows["vector"])
        rows["check"] = [zlib.crc32(vector, zlib.crc32(key)) for key, vector in pairs]
        folder = self.path.parent
        with writing(folder, _REMEDY):
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "lock").open("w") as lock, self.path.open("ab") as file:
                fcntl.flock(lock, fcntl.LOCK_EX)
                # A process that was killed may have left an incomplete row.
                file.truncate(file.seek(0, os.SEEK_END) // rows.itemsize * rows.itemsize)
                file.write(rows.tobytes())
                file.flush()
                self._make_room()
                self._map()

    def _map(self) -> None:
        """Map the complete rows of the file into memory, and look up the keys of new rows."""
        n_known, row = len(self._rows), self._rows.dtype
        n_rows = self.path.stat().st_size // row.itemsize
        self._rows = np.asarray(np.memmap(self.path, row, "r", shape=(n_rows,)))
        self._numbers.update(zip(self._rows["key"][n_known:].tolist(), count(n_known)))
        os.utime(self.path)

    def _make_room(self) -> None:
        """Remove the files of the encoders that were used least recently until the rest fits."""
        folder = self.path.parent
        files = sorted(folder.glob(f"*{_SUFFIX}"), key=os.path.getmtime)
        excess = sum(map(os.path.getsize, files)) - self.max_bytes
        for path in files:
            if path != self.path and excess > 0:
                excess -= path.stat().st_size
                path.unlink()
        if excess > 0:
            text = f"{folder}  holds {self.max_bytes / 1e9:g} GB at most, too few for this data"
            raise OutputError(f"{text}. Raise 'max_gb' in the encoder's section.")
