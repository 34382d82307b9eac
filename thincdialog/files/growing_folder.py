"""Write a folder of arrays in pieces, so that another process can resume after an interruption.

A journal has the size of every file after the last saved piece. A process that resumes cuts the
files to these sizes. At the end, a manifest with all files is written, and the folder is moved to
its final path.
"""

import json
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Collection, Dict, Optional

from ..errors import DataError, OutputError
from .fingerprint import checksums
from .flat_array import HEADER, GrowingArray
from .held import N_TRIES, locked
from .json_file import write_json
from .json_text import parse_json
from .plain_file import not_plain, read_plain
from .whole_file import replace, sync, whole_file

MANIFEST, JOURNAL = "manifest.json", "journal.jsonl"
BUILDING = ".building"
SAVE_SECONDS = 10.0


class GrowingFolder:
    """Write a folder under a temporary name next to its final path, until it is complete.

    folder (Path): The final path.
    fingerprint (Any): Fingerprint of the inputs, as JSON. An unfinished folder with another
        fingerprint is deleted.

    state (Any): Last state in the journal, saved by this process or an earlier one; None if there
        is none.
    RAISES (OutputError): If another process writes the same folder.
    """

    def __init__(self, folder: Path, fingerprint: Any):
        self.folder, self.fingerprint = folder, fingerprint
        self.temporary = folder.with_name(f"{folder.name}{BUILDING}")
        self._lock = ExitStack()
        try:
            self._make_locked()
        except OSError as error:
            raise OutputError(
                f"{folder}  cannot be created: {error.strerror}. Give another folder."
            ) from None
        last = _last_entry(self.temporary / JOURNAL, fingerprint)
        if any(not_plain(path) for path in self.temporary.iterdir()):
            last = None  # This code makes no links or pipes, so start from scratch.
        elif last is not None and not _has_all(self.temporary, last["bytes"]):
            last = None  # The disk lost data, for example in a power failure.
        self._sizes: Dict[str, int] = {} if last is None else last["bytes"]
        self.state: Any = None if last is None else last["state"]
        self._arrays: Dict[str, GrowingArray] = {}
        if last is None:
            for path in self.temporary.iterdir():
                path.unlink()
            self._note()
        self._saved = time.monotonic()

    def _make_locked(self) -> None:
        """Make the temporary folder if it is missing, and lock it."""
        for _ in range(N_TRIES):
            self.temporary.mkdir(parents=True, exist_ok=True)
            # Another process may have completed and moved the folder before it was locked here.
            if self._lock.enter_context(locked(self.temporary, of_anyone=True)):
                return
        raise OutputError(
            f"{self.temporary}  is being written by another process, or cannot be locked: wait "
            "until it is done, or give another folder."
        )

    def array(self, name: str, dtype: str, width: int = 0) -> GrowingArray:
        """Return an array of the folder, to which rows can be appended (see ``GrowingArray``)."""
        if name not in self._arrays:
            path = self.temporary / f"{name}.npy"
            n_bytes = self._sizes.get(path.name, HEADER)
            self._arrays[name] = GrowingArray(path, dtype, width, n_bytes)
        return self._arrays[name]

    def save(self, state: Any) -> None:
        """Save the progress in the journal, at most every ``SAVE_SECONDS``, so that an interruption
        loses no more work than this.

        state (Any): Position from which a later process can resume, as JSON.
        """
        if time.monotonic() - self._saved < SAVE_SECONDS:
            return
        for each in self._arrays.values():
            each.sync()
        self.state = state
        self._note()
        self._saved = time.monotonic()

    def _note(self) -> None:
        sizes = {array.path.name: array.n_bytes for array in self._arrays.values()}
        with whole_file(self.temporary / JOURNAL) as path:
            entry = {**_head(self.fingerprint), "bytes": sizes, "state": self.state}
            path.write_text(json.dumps(entry), encoding="utf8")

    def end_arrays(self) -> None:
        """Complete the arrays, so that they can be read. Nothing can be appended afterwards."""
        for each in self._arrays.values():
            each.finish()

    def finish(self, manifest: Dict[str, Any], gone: Collection[str] = ()) -> None:
        """Write the manifest, and move the folder to its final path.

        manifest (Dict[str, Any]): Content of the manifest, except the fingerprint and the files.
        gone (Collection[str]): Names of arrays to delete, because only the build needed them.
        """
        paths = sorted(path for path in self.temporary.glob("*.npy") if path.stem not in gone)
        found = {"fingerprint": self.fingerprint, **manifest}
        found["files"] = checksums(self.temporary, paths)
        with whole_file(self.temporary / MANIFEST) as path:
            write_json(path, found)
        kept = {MANIFEST, *(path.name for path in paths)}
        for path in self.temporary.iterdir():
            if path.name not in kept:
                path.unlink()
        sync(self.temporary)
        replace(self.temporary, self.folder)
        self.close()

    def close(self) -> None:
        """Close the files without completing them, and release the lock. A later process can
        resume."""
        for each in self._arrays.values():
            with suppress(OSError):
                each.close()
        self._lock.close()


def _has_all(folder: Path, sizes: Dict[str, int]) -> bool:
    """Return whether each file has at least the size in the journal."""
    there = {path.name: path.stat().st_size for path in folder.iterdir()}
    return all(there.get(name, -1) >= size for name, size in sizes.items())


def _head(fingerprint: Any) -> Dict[str, Any]:
    """Return the entries by which a journal is recognized. A folder whose journal has another
    fingerprint or format is written again from scratch."""
    return {"fingerprint": fingerprint, "format": 4}


def _last_entry(path: Path, fingerprint: Any) -> Optional[Dict[str, Any]]:
    """Read a journal. Return None if it is missing or damaged, or has another format or
    fingerprint."""
    try:
        found = parse_json(read_plain(path))
    except (OSError, ValueError):
        return None
    is_same = isinstance(found, dict) and {**found, **_head(fingerprint)} == found
    return found if is_same else None


def read_manifest(folder: Path) -> Optional[Dict[str, Any]]:
    """Read the manifest of a folder. Return None if there is none.

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
        raise DataError(path, "is damaged: not a JSON object. Build the store again.")
    return found
