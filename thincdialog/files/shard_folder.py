"""Write a folder of arrays in shards, so that another process can continue after an interruption.

Each shard is a file that is written completely or not at all. At the end, each array of the shards
is joined into one file, and the folder with these files and a manifest is moved to its final path.
"""

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, Collection, Dict, Iterator, List, Optional

import numpy as np

from ..errors import DataError, ModelError, OutputError
from .array_file import append_rows, read_arrays, write_array, write_head
from .fingerprint import checksums
from .held import locked, remove_path
from .json_file import write_json
from .json_text import parse_json
from .plain_file import read_plain, real_path
from .whole_file import whole_folder

MANIFEST = "manifest.json"
BUILDING = ".building"
# Version of the shards; shards of another version are deleted.
FORMAT = 6
# Array of each shard that has the facts about it, as JSON.
_ABOUT = "about"


class ShardFolder:
    """Write a folder in shards, which are kept next to its final path until all are written.

    folder (Path): The final path.
    fingerprint (Any): Fingerprint of the inputs, as JSON. Shards with another fingerprint are
        deleted.

    paths (List[Path]): The shards written so far, by this process or an earlier one.
    n_rows (Counter[str]): Number of rows of each array in these shards.
    state (Any): State given with the last shard; None if there is no shard.
    RAISES (OutputError): If another process writes a folder next to this one, or if the shards
        cannot be written.
    """

    def __init__(self, folder: Path, fingerprint: Any):
        self.folder, self.fingerprint = folder, fingerprint
        self.shards = folder.with_name(f"{folder.name}{BUILDING}")
        self._lock = ExitStack()
        try:
            self.shards.mkdir(parents=True, exist_ok=True)
            is_locked = self._lock.enter_context(locked(real_path(folder.parent)))
        except OSError as error:
            text = f"cannot be created: {error.strerror}. Give another folder."
            raise OutputError(f"{folder}  {text}") from None
        if not is_locked:
            text = "is being written by another process, or cannot be locked"
            hint = "wait until it is done, or give another folder"
            raise OutputError(f"{folder}  {text}: {hint}.")
        self.paths = sorted(self.shards.glob("*.npz"))
        head, n_rows, self.state = self._last()
        if head != self._head():
            self.paths, n_rows, self.state = [], {}, None
        self.n_rows = Counter(n_rows)
        for path in set(self.shards.iterdir()) - set(self.paths):
            remove_path(path)

    def _head(self) -> List[Any]:
        """Return the facts by which the last shard is recognized."""
        return [FORMAT, self.fingerprint, len(self.paths)]

    def _last(self) -> List[Any]:
        """Return the head, the numbers of rows, and the state after the last shard."""
        try:
            found = read_arrays(self.paths[-1], [_ABOUT])[_ABOUT]
            return list(json.loads(found.tobytes()))
        except (ModelError, LookupError, ValueError, TypeError):
            return [None, {}, None]

    def add(self, arrays: Dict[str, np.ndarray], state: Any = None) -> None:
        """Write a shard.

        arrays (Dict[str, np.ndarray]): The next rows of each array. All shards have arrays of the
            same types.
        state (Any): Position from which a later process can continue after this shard, as JSON.
        RAISES (OSError): If it cannot be written.
        """
        path = self.shards / f"{len(self.paths):08}.npz"
        self.paths.append(path)
        self.n_rows.update({name: len(rows) for name, rows in arrays.items()})
        self.state = state
        about = json.dumps([self._head(), self.n_rows, state]).encode()
        named: Any = {**arrays, _ABOUT: np.frombuffer(about, np.uint8)}
        new = self.shards / "new"
        with new.open("wb") as file:
            np.savez(file, **named)
        new.rename(path)

    def ends(self, name: str, lengths: np.ndarray, of: str) -> np.ndarray:
        """Return the next rows of an array with the start of each slice of another array: the ends
        of some slices, after the 0 with which the array begins.

        name, of (str): Name of this array, and of the other array.
        lengths (np.ndarray): Length of each slice, int64.
        """
        ends: np.ndarray = self.n_rows[of] + lengths.cumsum()
        return ends if self.n_rows[name] else np.append(0, ends)

    def column(self, name: str) -> np.ndarray:
        """Return all rows of an array.

        RAISES (DataError): If a shard is damaged.
        """
        return np.concatenate([shard[name] for shard in self._read([name])])

    def _read(self, names: Collection[str]) -> Iterator[Dict[str, np.ndarray]]:
        for path in self.paths:
            try:
                yield read_arrays(path, names)
            except ModelError:
                raise DataError(path, "is damaged. Remove its folder and build it again.") from None

    def finish(
        self,
        manifest: Dict[str, Any],
        arrays: Dict[str, np.ndarray],
        gone: Collection[str] = (),
        check: Callable[[Path], Any] = lambda folder: None,
    ) -> None:
        """Join the shards, write the manifest, and move the folder to its final path.

        manifest (Dict[str, Any]): Content of the manifest, except the fingerprint and the files.
        arrays (Dict[str, np.ndarray]): Arrays to write instead of those of the shards.
        gone (Collection[str]): Names of arrays of the shards that the folder does not need.
        check (Callable): Called with the complete folder before it is moved.
        RAISES (OSError): If the folder cannot be written.
        """
        with whole_folder(self.folder) as new:
            self._join(new, self.n_rows.keys() - arrays.keys() - set(gone))
            for name, rows in arrays.items():
                write_array(new / f"{name}.npy", rows)
            files = checksums(new, sorted(new.iterdir()))
            found = {"fingerprint": self.fingerprint, **manifest, "files": files}
            write_json(new / MANIFEST, found)
            check(new)
        remove_path(self.shards)
        self.close()

    def _join(self, folder: Path, names: Collection[str]) -> None:
        with ExitStack() as stack:
            files: Dict[str, Any] = {}
            for shard in self._read(names):
                for name, rows in shard.items():
                    if name not in files:
                        file = (folder / f"{name}.npy").open("wb")
                        files[name] = stack.enter_context(file)
                        write_head(file, rows.dtype, (self.n_rows[name], *rows.shape[1:]))
                    append_rows(files[name], rows)

    def close(self) -> None:
        """Release the lock. A later process can continue after the last shard."""
        self._lock.close()


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
