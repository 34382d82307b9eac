"""A store on disk that is mapped into memory, and may be larger than memory."""

import json
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, cast

import numpy as np

from ..files.flat_array import CHUNK, MappedFolder
from ..formats.context import BadData
from .encoded import Encoded
from .store import NO_LABEL
from .strings import ChosenStrings, Strings
from .table import ARRAY, JSON, KIND, STRINGS, Table


class MappedStore(Table):
    """Read a store that ``StoreWriter`` wrote. Rows are not cached, so memory use does not depend
    on the number of rows.

    folder (Path): Folder of the store.
    manifest (Dict[str, Any]): Content of its manifest.
    n_rows (int): Number of examples.
    checksum (str): Checksum of the whole store.
    bad (Dict[str, BadData]): For each file, the bad data left out when the store was built.
    RAISES (DataError): If a file is missing, truncated, or not an array of the store, or if a
        number of a label or an episode is out of range.
    """

    is_held = False

    def __init__(self, folder: Path, manifest: Dict[str, Any]):
        super().__init__()
        self.folder = folder
        self.n_rows: int = manifest["examples"]
        self.checksum = sha256(json.dumps(manifest["files"]).encode()).hexdigest()
        files = self._files = MappedFolder(folder)
        self.strings, self.ids = (_MappedStrings(files, name) for name in ("strings", "ids"))
        if len(self.ids) != self.n_rows:
            raise files.damaged("ids.starts", f"{len(self.ids):,} rows")
        self.list_values = files.array("lists", "i")
        self.list_starts = files.bounds("lists.starts", len(self.list_values))
        self.bad = {
            path: BadData(path, *cast(Any, [*map(int, found[:4]), *found[4:]]))
            for path, found in manifest.get("left_out", {}).items()
        }
        self._columns = {name: self._of_rows(file) for name, file in manifest["fields"].items()}
        self.fields = list(self._columns)
        labels = ChosenStrings(self.strings, files.array("labels", "i"))
        label_ids = self._of_rows("label_ids")
        files.check("label_ids", label_ids, NO_LABEL, len(labels) - 1)
        self._numbered_labels = label_ids, labels
        self.starts: Sequence[int] = range(self.n_rows + 1)
        if manifest["episodes"] != self.n_rows:
            starts = files.bounds("starts", self.n_rows)
            files.check("starts", starts, 0, self.n_rows, rise=1)
            self.starts = starts  # type: ignore[assignment]
        self.tokens: Dict[str, Encoded] = {}

    def _of_rows(self, name: str) -> np.ndarray:
        column = self._files.array(name, "i")
        if len(column) != self.n_rows:
            raise self._files.damaged(name, f"{len(column):,} rows")
        return column

    # --- cells ----------------------------------------------------------------------------

    def column(self, name: str) -> Optional[np.ndarray]:
        return self._columns.get(name)

    def other(self, number: int, kind: int) -> Any:
        if kind == JSON:
            return self._json(number)
        array = self._array(number)
        return array if kind == ARRAY else array.tolist()

    def _list(self, number: int, kind: int) -> List[Any]:
        if not 0 <= number < len(self.list_starts) - 1:
            raise self._files.damaged("lists", f"list {number}")
        return super()._list(number, kind)

    def _json(self, number: int) -> Any:
        try:
            return json.loads(self.strings[number])
        except (ValueError, RecursionError):
            raise self._files.damaged("strings", f"string {number} is not JSON") from None

    def _array(self, number: int) -> np.ndarray:
        try:
            (whole,) = self.strings.slices(np.array([number]))
            about, _, content = whole.partition(b"\n")
            kind, shape = json.loads(about)
            dtype = np.dtype(kind)
            if dtype.kind not in "biuf" or min(shape, default=0) < 0:
                raise ValueError
            # A copy, so that the array can be modified.
            return np.frombuffer(content, dtype).reshape(shape).copy()
        except (LookupError, ValueError, TypeError, RecursionError):
            raise self._files.damaged("strings", f"string {number} is not an array") from None

    # --- properties of all rows -------------------------------------------------------------

    def frequent_labels(self, most: int) -> Optional[List[str]]:
        """Return the distinct labels, the most frequent first; equally frequent labels are in the
        order of first occurrence. None if the labels of some row are not one label.

        most (int): Maximum number of labels to return.
        """
        texts, column = self.label_texts, self._columns.get("labels", self.label_ids[:0])
        counts = np.zeros(len(texts), dtype=np.int32)
        for start in range(0, self.n_rows, 1 << 20):
            some = slice(start, start + (1 << 20))
            if (column[some] & KIND == STRINGS).any():
                return None
            ids = self.label_ids[some]
            np.add.at(counts, ids[ids != NO_LABEL], 1)
        order = np.argsort(-counts, kind="stable")[:most]
        return [texts[number] for number in order.tolist()]


class _MappedStrings(Strings):
    """Read the strings of a file, each on access.

    files (MappedFolder): Folder with the file.
    name (str): Name of the file.
    """

    def __init__(self, files: MappedFolder, name: str):
        content: Any = files.array(name, "u")
        starts = files.bounds(f"{name}.starts", len(content))
        files.check(f"{name}.starts", starts, 0, rise=0)
        super().__init__(memoryview(content), starts)
        self._files, self._name = files, name

    def __getitem__(self, number: int) -> str:
        with self._checking(number):
            return super().__getitem__(number)

    def take(self, numbers: np.ndarray) -> List[str]:
        with self._checking(numbers.min(initial=0)):
            return super().take(numbers)

    @contextmanager
    def _checking(self, least: int) -> Iterator[None]:
        """Raise an error if a string that is read in the block is damaged, or if the lowest number
        is negative."""
        try:
            if least < 0:
                raise IndexError
            yield
        except (IndexError, UnicodeDecodeError):
            text = "a number out of range, or no UTF-8"
            raise self._files.damaged(self._name, text) from None


def mapped_tokens(folder: Path, store: MappedStore, n_ids: int) -> Encoded:
    """Map the tokens of a store into memory. The first entries are the store's labels, in their
    order; the entries of turns follow.

    folder (Path): Folder of the tokens.
    n_ids (int): Number of ids of the tokenizer.
    RAISES (DataError): If a file is missing, truncated, or not an array of tokens, or if a number
        is out of range, because kernels do not check their indices.
    """
    files = MappedFolder(folder)
    check, turns = files.check, files.array("turns", "i")
    bounds = files.bounds("bounds", len(turns))
    entries, tokens = files.array("entries", "i", 3).T, files.array("tokens", "iu")
    firsts, lengths, units = entries
    if len(bounds) != store.n_rows + 1:
        raise files.damaged("bounds", f"{len(bounds):,} rows")
    if len(firsts) < len(store.label_texts):
        raise files.damaged("entries", f"{len(firsts):,} rows")
    check("bounds", bounds, 0, len(turns), rise=0)
    check("turns", turns, 0, len(firsts) - 1)
    ids = tokens
    if ids.dtype.itemsize == 8:  # Each value is an id and a segment.
        ids, segments = ids.view(np.int32).reshape(-1, 2).T
        check("tokens", segments, 0)
    check("tokens", ids, 0, n_ids - 1)
    check("entries", firsts, 0, len(tokens))
    check("entries", lengths, 1, len(tokens))
    check("entries", units, 0)
    for start in range(0, len(firsts), CHUNK):
        some = slice(start, start + CHUNK)
        check("entries", firsts[some] + lengths[some], 0, len(tokens))
    return Encoded(bounds, turns, entries, tokens, np.arange(0), store.label_ids)
