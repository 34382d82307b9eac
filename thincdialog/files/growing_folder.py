"""A folder of arrays that is written in pieces, so that an interrupted process can be resumed.

A journal records the length of every file after each piece. A process that resumes cuts the files
to these lengths. At the end, a manifest with all files is written, and the folder is moved to its
final path.
"""

import fcntl
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Collection, Dict, Optional

from ..errors import DataError, OutputError
from .checksums import checksums
from .flat_array import GrowingArray
from .json_file import write_json
from .json_text import parse_json
from .plain_file import not_plain, read_plain
from .whole_file import sync, whole_file
from .whole_folder import replace

MANIFEST, JOURNAL = "manifest.json", "journal.jsonl"
BUILDING = ".building"
SAVE_SECONDS = 10.0


class GrowingFolder:
    """Write a folder next to its final path until it is complete.

    folder (Path): The final path.
    fingerprint (Any): Fingerprint of the inputs, as JSON; an unfinished folder with another
        fingerprint is dropped.

    state (Any): State of the last ``save`` in the journal, by this process or an earlier one;
        None if there is none.
    RAISES (OutputError): If another process writes the same folder.
    """

    def __init__(self, folder: Path, fingerprint: Any):
        self.folder, self.fingerprint = folder, fingerprint
        self.temporary = folder.with_name(f"{folder.name}{BUILDING}")
        try:
            self._lock = _locked(self.temporary)
        except OSError as error:
            raise OutputError(
                f"{folder}  cannot be made: {error.strerror}. Give another folder."
            ) from None
        last = _last_entry(self.temporary / JOURNAL, fingerprint)
        if any(not_plain(path) for path in self.temporary.iterdir()):
            last = None  # A link or a pipe is not from this code: start from scratch.
        elif last is not None and not _has_all(self.temporary, last["bytes"]):
            last = None  # The disk lost data, for example in a power failure.
        self._n_rows: Dict[str, int] = {} if last is None else last["rows"]
        self.state: Any = None if last is None else last["state"]
        self._arrays: Dict[str, GrowingArray] = {}
        if last is None:
            for path in self.temporary.iterdir():
                path.unlink()
        self._saved = time.monotonic()
        self._journal = (self.temporary / JOURNAL).open("a", encoding="utf8")
        if last is None:
            self._note(_first_entry(fingerprint))

    def array(self, name: str, dtype: str, width: int = 0) -> GrowingArray:
        """Return an array of the folder to append to (see ``GrowingArray``)."""
        if name not in self._arrays:
            path, n_rows = self.temporary / f"{name}.npy", self._n_rows.get(name, 0)
            self._arrays[name] = GrowingArray(path, dtype, width, n_rows)
        return self._arrays[name]

    def save(self, state: Any) -> None:
        """Note the progress in the journal, at most every ``SAVE_SECONDS``, so that no more work
        than that is lost.

        state (Any): Position from which a later process resumes, as JSON.
        """
        if time.monotonic() - self._saved < SAVE_SECONDS:
            return
        for each in self._arrays.values():
            each.sync()
        self.state = state
        # Sync the folder, so that new files are found after a crash.
        sync(self.temporary)
        rows = {name: array.n_rows for name, array in self._arrays.items()}
        sizes = {array.path.name: array.n_bytes for array in self._arrays.values()}
        self._note({"rows": rows, "bytes": sizes, "state": state})
        self._saved = time.monotonic()

    def _note(self, entry: Dict[str, Any]) -> None:
        self._journal.write(json.dumps(entry) + "\n")
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def end_arrays(self) -> None:
        """Complete the files, so that they can be read; nothing can be appended after that."""
        for each in self._arrays.values():
            each.finish()

    def finish(self, manifest: Dict[str, Any], gone: Collection[str] = ()) -> None:
        """Write the manifest, and move the folder to its final path.

        manifest (Dict[str, Any]): Content of the manifest, except fingerprint and files.
        gone (Collection[str]): Arrays to delete, which only the build needed.
        """
        paths = sorted(path for path in self.temporary.glob("*.npy") if path.stem not in gone)
        found = {"fingerprint": self.fingerprint, **manifest}
        found["files"] = checksums(self.temporary, paths)
        with whole_file(self.temporary / MANIFEST) as path:
            write_json(path, found)
        self._journal.close()
        kept = {MANIFEST, *(path.name for path in paths)}
        for path in self.temporary.iterdir():
            if path.name not in kept:
                path.unlink()
        sync(self.temporary)
        replace(self.temporary, self.folder)
        self.close()

    def close(self) -> None:
        """Close the files without finishing them; a later process can resume."""
        for each in self._arrays.values():
            with suppress(OSError):
                each.close()
        with suppress(OSError):
            self._journal.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _locked(folder: Path) -> int:
    """Make a folder if it is missing, and lock it."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            text = f"{folder}  is being written by another process: wait until it is done."
            raise OutputError(text) from None
        # Another process may have finished the folder and moved it away before it was locked.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(folder)):
                return handle
        os.close(handle)


def _has_all(folder: Path, sizes: Dict[str, int]) -> bool:
    """Return whether each file has at least its noted size."""
    there = {path.name: path.stat().st_size for path in folder.iterdir()}
    return all(there.get(name, -1) >= size for name, size in sizes.items())


def _first_entry(fingerprint: Any) -> Dict[str, Any]:
    """Return the first line of a journal. A folder that another format began is begun again."""
    return {"fingerprint": fingerprint, "format": 2}


def _last_entry(path: Path, fingerprint: Any) -> Optional[Dict[str, Any]]:
    """Return the last entry of a journal; None if it has no entry or another fingerprint. An
    incomplete last line is ignored."""
    try:
        lines = read_plain(path).split(b"\n")[:-1]
        if len(lines) < 2 or parse_json(lines[0]) != _first_entry(fingerprint):
            return None
        last: Dict[str, Any] = parse_json(lines[-1])
    except (OSError, ValueError):
        return None
    return last


def read_manifest(folder: Path) -> Optional[Dict[str, Any]]:
    """Read a folder's manifest; return None if there is none.

    RAISES (DataError): If the manifest is damaged.
    """
    path = folder / MANIFEST
    try:
        found = parse_json(read_plain(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        text = f"cannot be read: {error.strerror}. Build the store again."
        raise DataError(path, text) from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError(path, "is damaged: no JSON object. Build the store again.")
    return found
