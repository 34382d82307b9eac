"""Keep the vectors of texts on disk, by key, so that later runs need not compute them.

    FOLDER/ENCODER/NAME.keys       for each text, a key of 16 bytes and the CRC-32 of the vector
    FOLDER/ENCODER/NAME.vectors    for each text, the vector, float32

Each process appends to its own files. So processes do not wait for each other, and if a process is
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
    """Return the folder of the vectors if the config names none. It is in the user's cache.

    RAISES (OutputError): If the user has no home folder.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if cache.startswith("~"):
        text = (
            "There is no home folder for the vectors of texts. Set XDG_CACHE_HOME, or 'vectors' in"
        )
        raise OutputError(f"{text} the encoder's section.")
    return Path(cache) / "thincdialog" / "vectors"


class VectorFiles:
    """Read and write the vectors of one encoder.

    folder (Path): Folder of the vectors of all encoders; created at the first write.
    encoder (str): Name of the encoder's folder inside that folder.
    width (int): Width of a vector.
    max_bytes (int): Largest size of the vectors of all encoders together. If they are larger, the
        files that were used least recently are removed.
    """

    def __init__(self, folder: Path, encoder: str, width: int, max_bytes: int):
        self.root, self.folder, self.max_bytes = folder, folder / encoder, max_bytes
        self.width, self._own, self._n_own = width, self.folder / uuid4().hex, 0
        self._arrays: Dict[Path, Any] = {}
        # Key to the array and the row that hold the vector, and the checksum of the vector.
        self._places: Dict[bytes, Tuple[Path, int, int]] = {}
        for path in sorted(self.folder.glob("*.keys")):
            with suppress(OSError):  # Another process has removed it.
                self._read(path.with_suffix(""))

    def get(self, key: bytes) -> Optional[np.ndarray]:
        """Return a vector; None if it is missing or damaged."""
        if key not in self._places:
            return None
        path, row, check = self._places[key]
        vector: Any = self._arrays[path][row]
        if zlib.crc32(vector) == check:
            return vector
        # Damaged. A later run must find the vector that is computed now.
        with suppress(OSError):
            for suffix in (".keys", ".vectors"):
                path.with_suffix(suffix).unlink(missing_ok=True)
        return None

    def add(self, keys: List[bytes], vectors: np.ndarray) -> None:
        """Write the vectors of new keys.

        RAISES (OutputError): If the vectors cannot be written, or exceed the size of the folder.
        """
        checks = [zlib.crc32(vector) for vector in vectors]
        with writing(self.folder, _REMEDY):
            self.folder.mkdir(parents=True, exist_ok=True)
            known = np.array(list(zip(keys, checks)), dtype=_KEY)
            # Vectors are written first, because a key without a vector would get the vector of the
            # next text.
            for kind, rows in (".vectors", vectors.astype("<f4")), (".keys", known):
                with self._own.with_suffix(kind).open("ab") as file:
                    file.write(rows.tobytes())
            self._make_room()
            self._n_own = self._read(self._own, self._n_own)

    def _read(self, path: Path, first: int = 0) -> int:
        """Look up the records of a file from number ``first`` on, and return the number of all
        records in the file."""
        keys, vectors = path.with_suffix(".keys"), path.with_suffix(".vectors")
        n_vectors = vectors.stat().st_size // (4 * self.width)
        found = np.fromfile(keys, _KEY, n_vectors - first, offset=first * _KEY.itemsize).tolist()
        if found:
            shape = (first + len(found), self.width)
            self._arrays[path] = np.memmap(vectors, np.float32, "r", shape=shape)
        for row, (name, check) in enumerate(found, first):
            self._places.setdefault(name, (path, row, check))
        for file in (keys, vectors):
            os.utime(file)
        return first + len(found)

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
            text = f"holds {self.max_bytes / 1e9:g} GB at most, too little for this data"
            raise OutputError(f"{self.root}  {text}. Raise 'max_gb' in the encoder's section.")
