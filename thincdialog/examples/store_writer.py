"""Write a store of examples to disk, shard by shard."""

import re
from hashlib import blake2b
from pathlib import Path
from typing import Any, Dict, Iterable, List, Sized

import numpy as np

from ..files.flat_array import GrowingArray
from ..files.growing_folder import GrowingFolder
from .first_sight import by_first_sight
from .memory_store import MemoryStore
from .store import NO_LABEL
from .store_cells import ShardCells
from .strings import in_utf8
from .table import NO_CELL

# Number of rows that are filled in at a time in a new column.
_CHUNK = 1 << 16
# Index -1 of the last number, so rows without a label keep the label -1.
_NONE = np.int32(NO_LABEL)


class StoreWriter:
    """Append shards to a store. A new writer for the same folder continues the work of a writer
    that was stopped; at most a few seconds of it are lost.

    folder (Path): Folder of the store.
    fingerprint (Any): Identifies the data of the store, as JSON.

    n_rows (int): Number of rows written so far.
    has_several_labels (bool): Whether any row has several labels.
    next (Any): Position in the source to read from, as given to ``add``; None for its beginning.
    """

    def __init__(self, folder: Path, fingerprint: Any):
        self.files = GrowingFolder(folder, fingerprint)
        state = self.files.state or {"fields": [], "has_several_labels": False, "next": None}
        self.has_several_labels: bool = state["has_several_labels"]
        self.next: Any = state["next"]
        array = self.files.array
        self._strings, self._string_starts = array("strings", "|u1"), array("strings.starts", "<i8")
        self._lists, self._list_starts = array("lists", "<i8"), array("lists.starts", "<i8")
        self._arrays, self._array_index = array("arrays", "|u1"), array("arrays.index", "<i8", 2)
        self._starts, self._n_words = array("starts", "<i8"), array("n_words", "<i4")
        # Labels are numbered shard by shard here, and through the whole store at the end.
        self._labels, self._label_ids = array("shard_labels", "<i8"), array("shard_ids", "<i8")
        self._label_keys = array("shard_keys", "<u8")
        for each in (self._string_starts, self._list_starts, self._starts):
            if not each.n_rows:
                each.append([0])
        self._columns = {
            field: array(column_name(number, field), "<i8")
            for number, field in enumerate(state["fields"])
        }

    @property
    def n_rows(self) -> int:
        return self._n_words.n_rows

    def add(self, store: MemoryStore, next: Any) -> None:
        """Append some episodes.

        next (Any): Position in the source after these episodes, as JSON.
        RAISES (DataError): If an example has a value that a store cannot hold.
        RAISES (OSError): If the store cannot be written.
        """
        cells = ShardCells(
            store,
            self._string_starts.n_rows - 1,
            self._list_starts.n_rows - 1,
            self._arrays,
            self._array_index,
        )
        for name in store.names:
            if name not in self._columns:
                self._add_field(name)
        for name, column in self._columns.items():
            column.append(cells.column(name))
        several = (labels for labels in store.all_cells("labels") if labels and len(labels) > 1)
        self.has_several_labels = self.has_several_labels or any(several)
        labels, label_ids = list(map(in_utf8, store.label_texts)), store.label_ids
        label_ids = np.where(label_ids == NO_LABEL, NO_LABEL, label_ids + self._labels.n_rows)
        self._label_ids.append(label_ids)
        self._labels.append([cells.strings[label] for label in labels])
        self._label_keys.append(_keys(labels))
        _append_ends(self._string_starts, self._strings.n_rows, cells.strings)
        self._strings.append(np.frombuffer(b"".join(cells.strings), dtype=np.uint8))
        _append_ends(self._list_starts, self._lists.n_rows, cells.lists)
        self._lists.append(cells.list_values())
        self._starts.append(self.n_rows + np.asarray(store.starts)[1:])
        self._n_words.append(store.n_words)
        self.next = next
        has_several_labels, fields = self.has_several_labels, list(self._columns)
        state = {"fields": fields, "has_several_labels": has_several_labels, "next": next}
        self.files.save(state)

    def _add_field(self, name: str) -> None:
        """Begin the column of a field that no earlier row has."""
        column = self.files.array(column_name(len(self._columns), name), "<i8")
        for first in range(0, self.n_rows, _CHUNK):
            column.append(np.full(min(_CHUNK, self.n_rows - first), NO_CELL))
        self._columns[name] = column

    def finish(self, about: Dict[str, Any]) -> None:
        """Number the labels, and move the store to its place.

        about (Dict[str, Any]): Further entries of the manifest.
        """
        n_rows, n_episodes = self.n_rows, self._starts.n_rows - 1
        self.files.end_arrays()
        n_labels = self._number_labels()
        manifest = {
            **about,
            "examples": n_rows,
            "episodes": n_episodes,
            "labels": n_labels,
            "has_several_labels": self.has_several_labels,
            "fields": {field: column_name(n, field) for n, field in enumerate(self._columns)},
        }
        gone = ["shard_labels", "shard_ids", "shard_keys"]
        self.files.finish(manifest, gone + ["starts"] * (n_episodes == n_rows))

    def _number_labels(self) -> int:
        """Number the labels of all shards together, and return how many labels differ."""
        folder = self.files.temporary
        keys, strings, of_rows = (
            np.load(folder / f"shard_{name}.npy", mmap_mode="r")
            for name in ("keys", "labels", "ids")
        )
        numbers, firsts = by_first_sight(keys)
        labels = self.files.array("labels", "<i8")
        labels.append(strings[firsts])
        label_ids = self.files.array("label_ids", "<i4")
        numbers = np.append(numbers, _NONE)
        for first in range(0, len(of_rows), _CHUNK):
            label_ids.append(numbers[of_rows[first : first + _CHUNK]])
        labels.finish()
        label_ids.finish()
        return len(firsts)


def column_name(number: int, field: str) -> str:
    """Return the name of a field's file, without its suffix."""
    is_plain = re.fullmatch(r"[a-z][a-z0-9_]{0,60}", field)
    return f"field.{field}" if is_plain else f"field.{number}"


def _append_ends(starts: GrowingArray, start: int, parts: Iterable[Sized]) -> None:
    """Append where each part ends, if the first one begins at ``start``."""
    starts.append(start + np.array(list(map(len, parts)), dtype=np.int64).cumsum())


def _keys(texts: List[bytes]) -> np.ndarray:
    """Hash each text, uint64; of ten million, two agree with a probability of 1 in 370,000."""
    return np.frombuffer(b"".join(blake2b(text, digest_size=8).digest() for text in texts), "<u8")
