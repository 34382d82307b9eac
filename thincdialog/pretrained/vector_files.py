"""Vectors of texts on disk, by key: what was computed once is there for every later run.

    FOLDER/ENCODER/NAME.keys       16 bytes a text, and the CRC-32 of its vector
    FOLDER/ENCODER/NAME.vectors    its vector, float32

Each process appends to files of its own. So processes do not wait for each other, and if one is
killed, only its last record is lost.
"""

import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple
from uuid import uuid4

import numpy as np

from ..errors import OutputError
from ..files.whole_file import writing

_KEY = np.dtype([("key", "V16"), ("check", "<u4")])
_REMEDY = "Free some space, or set 'vectors' in the encoder's section to another folder."


def default_folder() -> Path:
    """Where vectors are kept unless the config names a folder: in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "thincdialog" / "vectors"


class VectorFiles:
    """The vectors of one encoder.

    folder (Path): Of all encoders; it need not be there.
    encoder (str): What tells the encoder from others, as the name of a folder.
    width (int): Of a vector.
    max_bytes (int): Of the folder, all encoders together: what was used least recently goes.
    """

    def __init__(self, folder: Path, encoder: str, width: int, max_bytes: int):
        self.root, self.folder, self.max_bytes = folder, folder / encoder, max_bytes
        self._vector = np.dtype(("<f4", (width,)))
        self._own, self._n_own = self.folder / uuid4().hex, 0
        self._arrays: List[Any] = []
        # Which of the arrays holds a vector, in which row, and its checksum.
        self._places: Dict[bytes, Tuple[int, int, int]] = {}
        for path in sorted(self.folder.glob("*.keys")):
            with suppress(OSError):  # Another process has removed it.
                self._read(path.with_suffix(""))

    def get(self, key: bytes) -> Optional[np.ndarray]:
        """A vector, or None if it is not there, or is damaged."""
        array, row, check = self._places.get(key, (-1, 0, 0))
        vector = None if array < 0 else self._arrays[array][row]
        return None if vector is None or zlib.crc32(vector) != check else vector

    def add(self, keys: List[bytes], vectors: np.ndarray) -> None:
        """Keep vectors of keys that are new.

        RAISES (OutputError): If they cannot be written, or are more than the folder may hold.
        """
        checks = [zlib.crc32(vector) for vector in vectors]
        own = self._own.with_suffix(".vectors"), self._own.with_suffix(".keys")
        with writing(self.folder, _REMEDY):
            self.folder.mkdir(parents=True, exist_ok=True)
            known = np.array(list(zip(keys, checks)), dtype=_KEY)
            # Vectors first: a key without one would be another text's next time.
            for path, rows in zip(own, (vectors.astype("<f4"), known)):
                with path.open("ab") as file:
                    file.write(rows.tobytes())
            self._make_room()
            self._n_own = self._read(self._own, self._n_own)

    def _read(self, path: Path, first: int = 0) -> int:
        """Find what is in a file from a record on; RETURNS how many records it has."""
        files = (path.with_suffix(".keys"), _KEY), (path.with_suffix(".vectors"), self._vector)
        (keys, _), (vectors, _) = files
        n = min(file.stat().st_size // kind.itemsize for file, kind in files)
        if n > first:
            self._arrays.append(np.memmap(vectors, np.float32, "r", shape=(n, *self._vector.shape)))
            number = len(self._arrays) - 1
            found = np.fromfile(keys, _KEY, n - first, offset=first * _KEY.itemsize)
            for row, (name, check) in enumerate(found.tolist(), first):
                self._places.setdefault(name, (number, row, check))
        for file, _ in files:
            os.utime(file)
        return n

    def _make_room(self) -> None:
        """Remove the files that were used least recently until the rest fits."""
        facts = {}
        for path in self.root.glob("*/*"):
            with suppress(FileNotFoundError):
                facts[path] = path.stat()
        size = sum(each.st_size for each in facts.values())
        others = (path for path in facts if path.stem != self._own.name)
        for path in sorted(others, key=lambda each: facts[each].st_mtime_ns):
            if size <= self.max_bytes:
                return
            path.unlink(missing_ok=True)
            size -= facts[path].st_size
        if size > self.max_bytes:
            text = (
                f"holds {self.max_bytes / 1e9:g} GB at most, too few for the vectors of this data"
            )
            raise OutputError(f"{self.root}  {text}. Raise 'max_gb' in the encoder's section.")
