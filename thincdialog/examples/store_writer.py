"""Write a store of examples to disk, shard by shard."""

import re
from hashlib import blake2b
from pathlib import Path
from typing import Any, Dict, Iterable, List, Sequence

import numpy as np
from preshed.maps import PreshMap

from ..files.flat_array import HEADER
from ..files.growing_folder import GrowingFolder
from .cell_writer import CellWriter
from .memory_store import MemoryStore
from .store import NO_LABEL
from .strings import in_utf8
from .table import NO_CELL

# Number of rows that are filled in at a time in a new column.
_CHUNK = 1 << 16


class StoreWriter:
    """Append shards to a store. A new writer for the same folder continues the work of a writer
    that was stopped; at most a few seconds of work are lost.

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
        self._cells = CellWriter(self.files)
        array = self.files.array
        self._starts, self._n_words = array("starts", "<i8"), array("n_words", "<i4")
        if not self._starts.n_rows:
            self._starts.append([0])
        self._columns = {
            field: array(column_name(number, field), "<i8")
            for number, field in enumerate(state["fields"])
        }
        self._labels, self._label_ids = array("labels", "<i8"), array("label_ids", "<i4")
        # Labels are looked up by their hashes, which take less memory than the labels.
        self._label_keys, self._label_numbers = array("label_keys", "<u8"), PreshMap()
        known = np.fromfile(self._label_keys.path, dtype="<u8", offset=HEADER)
        for number, key in enumerate(known.tolist()):
            self._label_numbers[key] = number
        self._id_keys = array("id_keys", "<u8")

    @property
    def n_rows(self) -> int:
        return self._n_words.n_rows

    def add(self, store: MemoryStore, next: Any) -> None:
        """Append the episodes of a store.

        store (MemoryStore): The episodes to append.
        next (Any): Position in the source after these episodes, as JSON.
        RAISES (DataError): If an example has a value that a store cannot hold.
        RAISES (OSError): If the store cannot be written.
        """
        for name in store.names:
            if name not in self._columns:
                self._add_field(name)
        for name, column in self._columns.items():
            column.append(self._cells.column(store, name))
        several = (labels for labels in store.all_cells("labels") if labels and len(labels) > 1)
        self.has_several_labels = self.has_several_labels or any(several)
        numbers = self._number_labels(store.label_texts)
        # Index -1 (no label) selects the appended NO_LABEL.
        self._label_ids.append(np.array([*numbers, NO_LABEL])[store.label_ids])
        self._cells.strings.flush()
        self._cells.lists.flush()
        self._starts.append(self.n_rows + np.asarray(store.starts)[1:])
        self._n_words.append(store.n_words)
        self._id_keys.append(keys_of(store.all_cells("id")))
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

    def _number_labels(self, labels: Sequence[str]) -> List[int]:
        """Return the number of each label, and add new labels."""
        numbers, strings = [], []
        new: List[int] = []
        for label, key in zip(labels, keys_of(labels).tolist()):
            number = self._label_numbers[key]
            if number is None:
                number = self._label_numbers[key] = self._labels.n_rows + len(new)
                strings.append(self._cells.strings.numbers[in_utf8(label)])
                new.append(key)
            numbers.append(number)
        self._labels.append(strings)
        self._label_keys.append(new)
        return numbers

    def repeated_keys(self) -> np.ndarray:
        """Return the keys (see ``keys_of``) that the ids of several rows have. This takes 9 bytes
        of memory per row; call it before ``finish``."""
        self._id_keys.sync()
        keys = np.fromfile(self._id_keys.path, dtype="<u8", offset=HEADER)
        keys.sort()
        return keys[1:][keys[1:] == keys[:-1]]

    def finish(self, about: Dict[str, Any]) -> None:
        """Complete the store, and move it to its final path.

        about (Dict[str, Any]): Further entries of the manifest.
        """
        self.files.end_arrays()
        n_episodes = self._starts.n_rows - 1
        manifest = {
            **about,
            "examples": self.n_rows,
            "episodes": n_episodes,
            "labels": self._labels.n_rows,
            "has_several_labels": self.has_several_labels,
            "fields": {field: column_name(n, field) for n, field in enumerate(self._columns)},
        }
        gone = ["label_keys", "id_keys"] + ["starts"] * (n_episodes == self.n_rows)
        self.files.finish(manifest, gone)


def column_name(number: int, field: str) -> str:
    """Return the name of a field's file, without its suffix."""
    is_plain = re.fullmatch(r"[a-z][a-z0-9_]{0,60}", field)
    return f"field.{field}" if is_plain else f"field.{number}"


def keys_of(texts: Iterable[str]) -> np.ndarray:
    """Return a hash of each text, uint64. Among ten million texts, the probability that two have
    the same hash is 1 in 370,000."""
    hashes = (blake2b(text, digest_size=8).digest() for text in map(in_utf8, texts))
    return np.frombuffer(b"".join(hashes), "<u8")
