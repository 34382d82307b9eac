"""A store on disk, mapped into memory. It may be larger than the memory."""

import json
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, cast

import numpy as np

from ..files.flat_array import MappedFolder, damaged
from ..formats.bad_data import BadData
from .encoded import Encoded
from .mapped_tokens import MappedTokens
from .store import CHUNK, NO_LABEL
from .table import ARRAY, JSON, Table


class MappedStore(Table):
    """Read a store that ``StoreWriter`` wrote. Rows are not cached, so that any number of rows
    takes the same memory.

    folder (Path): Folder of the store.
    manifest (Dict[str, Any]): Content of its manifest.
    n_rows (int): Number of examples.
    checksum (str): Checksum of the whole store.
    has_several_labels (bool): Whether some row has more than one label.
    bad (Dict[str, BadData]): For each file, the bad data left out when the store was built.
    RAISES (DataError): If a file is missing, truncated, or not an array of the store.
    """

    is_mapped = True

    def __init__(self, folder: Path, manifest: Dict[str, Any]):
        super().__init__()
        self.folder = folder
        self.n_rows: int = manifest["examples"]
        self.checksum = sha256(json.dumps(manifest["files"]).encode()).hexdigest()
        files = self._files = MappedFolder(folder)
        self._strings = files.array("strings", "u")
        text: Any = self._strings
        self._text = memoryview(text)
        self._string_starts = self._bounds("strings.starts", len(self._strings))
        self.list_values = files.array("lists", "i")
        self.list_starts = self._bounds("lists.starts", len(self.list_values))
        self._arrays = files.array("arrays", "u")
        self._array_index = files.array("arrays.index", "i", 2)
        self.names = list(manifest["fields"])
        self.has_several_labels: bool = manifest["has_several_labels"]
        self.bad = {
            path: BadData(path, *cast(Any, [*map(int, found[:4]), *found[4:]]))
            for path, found in manifest.get("left_out", {}).items()
        }
        self._fields = {name: self._of_rows(file) for name, file in manifest["fields"].items()}
        self._n_words = self._of_rows("n_words")
        self._label_ids, self._labels = self._of_rows("label_ids"), files.array("labels", "i")
        self.starts: Sequence[int] = range(self.n_rows + 1)
        if manifest["episodes"] != self.n_rows:
            self.starts = self._bounds("starts", self.n_rows)  # type: ignore[assignment]
        self.tokens: Dict[str, MappedTokens] = {}

    def _of_rows(self, name: str) -> np.ndarray:
        column = self._files.array(name, "i")
        if len(column) != self.n_rows:
            raise damaged(self.folder / f"{name}.npy", f"{len(column):,} rows")
        return column

    def _bounds(self, name: str, end: int) -> np.ndarray:
        bounds = self._files.array(name, "i")
        if not len(bounds) or bounds[0] != 0 or bounds[-1] != end:
            raise damaged(self.folder / f"{name}.npy", f"it does not end with {end:,}")
        return bounds

    def check(self, split: str) -> None:
        """Do nothing, because the files are already checked."""

    # --- tokens ---------------------------------------------------------------------------

    @property
    def encoder_keys(self) -> Sequence[str]:  # type: ignore[override]
        return list(self.tokens)

    def encoded(self, key: str, rows: np.ndarray) -> Encoded:
        return self.tokens[key].encoded(rows, self._label_ids)

    # --- cells ----------------------------------------------------------------------------

    def column(self, name: str) -> Optional[np.ndarray]:
        return self._fields.get(name)

    def other(self, number: int, kind: int) -> Any:
        if kind == JSON:
            return self._json(number)
        array = self._array(number)
        return array if kind == ARRAY else array.tolist()

    def string(self, number: int) -> str:
        starts = self._string_starts
        if 0 <= number < len(starts) - 1:
            start, end = starts.item(number), starts.item(number + 1)
            if 0 <= start <= end <= len(self._text):
                try:
                    return str(self._text[start:end], "utf-8", "surrogatepass")
                except UnicodeDecodeError:
                    pass
        raise damaged(self.folder / "strings.npy", f"string {number}")

    def list_bounds(self, number: int) -> Tuple[int, int]:
        if not 0 <= number < len(self.list_starts) - 1:
            raise damaged(self.folder / "lists.npy", f"list {number}")
        return super().list_bounds(number)

    def _json(self, number: int) -> Any:
        try:
            return json.loads(self.string(number))
        except (ValueError, RecursionError):
            raise damaged(self.folder / "strings.npy", f"string {number} is no JSON") from None

    def _array(self, number: int) -> np.ndarray:
        try:
            start, about = self._array_index[number].tolist()
            kind, shape = json.loads(self.string(about))
            dtype, size = np.dtype(kind), 1
            for each in shape:
                size *= each
            if number < 0 or dtype.kind not in "biuf" or start < 0 or min(shape, default=0) < 0:
                raise ValueError
            flat = self._arrays[start : start + size * dtype.itemsize]
            # A copy, which outlives the store and may be changed.
            return np.array(flat.view(dtype).reshape(shape))
        except (ValueError, TypeError, IndexError, OverflowError):
            raise damaged(self.folder / "arrays.npy", f"array {number}") from None

    # --- properties of all rows -------------------------------------------------------------

    @property
    def label_ids(self) -> np.ndarray:
        return self._label_ids

    @cached_property
    def label_texts(self) -> Sequence[str]:
        return _Texts(self, self._labels)

    def frequent_labels(self, most: int) -> List[str]:
        """Return the distinct first labels, the most frequent first; equally frequent labels are
        in the order of first occurrence.

        most (int): Most labels to return.
        """
        counts = np.zeros(len(self._labels), dtype=np.int32)
        for start in range(0, self.n_rows, 1 << 20):
            ids = self._label_ids[start : start + (1 << 20)]
            np.add.at(counts, ids[ids != NO_LABEL], 1)
        chosen = np.arange(len(counts))
        if most < len(counts):
            rarest = -np.partition(-counts, most - 1)[most - 1]
            chosen = np.flatnonzero(counts >= rarest)
        order = np.argsort(-counts[chosen], kind="stable")[:most]
        texts = self.label_texts
        return [texts[number] for number in chosen[order].tolist()]

    @property
    def n_words(self) -> np.ndarray:
        return self._n_words

    @cached_property
    def _word_bounds(self) -> Any:
        bounds = np.zeros(self.n_rows + 1, dtype=np.int64)
        np.cumsum(self._n_words, out=bounds[1:])
        return bounds if self.is_single_turn else bounds[np.asarray(self.starts)]

    def check_numbers(self) -> None:
        """Check that all numbers used as an index into another array are in range.

        RAISES (DataError): If a number is out of range.
        """
        for start in range(0, self.n_rows, 1 << 20):
            ids = self._label_ids[start : start + (1 << 20)]
            if ids.min() < NO_LABEL or ids.max() >= len(self._labels):
                raise damaged(self.folder / "label_ids.npy", "a number out of range")
        if not isinstance(self.starts, range) and (np.diff(self.starts) < 1).any():
            raise damaged(self.folder / "starts.npy", "they do not rise")


class _Texts(Sequence[str]):
    """Read strings of a store, each on access."""

    def __init__(self, store: MappedStore, numbers: np.ndarray):
        self.store, self.numbers = store, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self.store.string(number) for number in self.numbers[index].tolist()]
        return self.store.string(self.numbers.item(index))

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self.numbers), CHUNK):
            yield from self[start : start + CHUNK]
