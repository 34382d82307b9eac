"""Write a store of examples to disk, shard by shard."""

import re
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterable, List

import numpy as np

from ..files.shard_folder import ShardFolder
from .disk_cells import DiskCells
from .first_sight import by_first_sight
from .memory_store import MemoryStore
from .store import NO_LABEL
from .strings import in_utf8
from .table import NO_CELL


class StoreWriter:
    """Append shards to a store. A new writer for the same folder continues after the last shard of
    a writer that was stopped.

    folder (Path): Folder of the store.
    fingerprint (Any): Identifies the data of the store, as JSON.

    next (Any): Position in the source to read from, as given to ``add``; None for its beginning.
    """

    def __init__(self, folder: Path, fingerprint: Any):
        self.files = ShardFolder(folder, fingerprint)
        state = self.files.state or {"fields": [], "next": None}
        self._fields: List[str] = state["fields"]
        self.next: Any = state["next"]

    @property
    def n_rows(self) -> int:
        """Number of rows written so far."""
        return self.files.n_rows["n_words"]

    def add(self, store: MemoryStore, next: Any) -> None:
        """Append the episodes of a store.

        store (MemoryStore): The episodes to append.
        next (Any): Position in the source after these episodes, as JSON.
        RAISES (DataError): If an example has a value that a store cannot hold.
        RAISES (OSError): If the store cannot be written.
        """
        n, ends, fields = self.files.n_rows, self.files.ends, self._fields
        fields += (name for name in store.names if name not in fields)
        cells = DiskCells(store, max(0, n["strings.starts"] - 1), max(0, n["lists.starts"] - 1))
        arrays = {}
        for number, name in enumerate(fields):
            file = column_name(number, name)
            # No earlier row has a field that is new.
            missing = np.full(self.n_rows - n[file], NO_CELL)
            arrays[file] = np.concatenate((missing, cells.column(name)))
        labels = store.label_texts
        arrays["labels"] = _integers(cells.strings[in_utf8(label)] for label in labels)
        for name, slices in (("strings", cells.strings), ("lists", cells.lists)):
            arrays[f"{name}.starts"] = ends(f"{name}.starts", _integers(map(len, slices)), name)
        arrays["strings"] = np.frombuffer(b"".join(cells.strings), np.uint8)
        arrays["lists"] = _integers(chain.from_iterable(cells.lists))
        arrays["starts"] = ends("starts", np.diff(store.starts), "n_words")
        arrays["n_words"] = store.n_words.astype("<i4")
        arrays["id_keys"] = keys_of(store.all_cells("id"))
        # Labels are numbered at the end, by their hashes. Until then, each shard has its own.
        arrays["label_keys"] = keys_of(labels)
        has_label = store.label_ids != NO_LABEL
        label_ids = np.where(has_label, store.label_ids + n["labels"], NO_LABEL)
        arrays["label_ids"] = label_ids.astype("<i4")
        self.files.add(arrays, {"fields": fields, "next": next})
        self.next = next

    def repeated_keys(self) -> np.ndarray:
        """Return the keys (see ``keys_of``) that the ids of several rows have. This takes 9 bytes
        of memory per row; call it before ``finish``."""
        keys = self.files.column("id_keys")
        keys.sort()
        return keys[1:][keys[1:] == keys[:-1]]

    def finish(self, about: Dict[str, Any]) -> None:
        """Complete the store, and move it to its final path.

        about (Dict[str, Any]): Further entries of the manifest.
        RAISES (OSError): If the store cannot be written.
        """
        column, n_episodes = self.files.column, self.files.n_rows["starts"] - 1
        numbers, firsts = by_first_sight(column("label_keys"))
        # Index -1 (no label) selects the appended NO_LABEL.
        label_ids = np.append(numbers, np.int32(NO_LABEL))[column("label_ids")]
        manifest = {
            **about,
            "examples": self.n_rows,
            "episodes": n_episodes,
            "labels": len(firsts),
            "fields": {field: column_name(n, field) for n, field in enumerate(self._fields)},
        }
        gone = ["label_keys", "id_keys"] + ["starts"] * (n_episodes == self.n_rows)
        labels = {"labels": column("labels")[firsts], "label_ids": label_ids}
        self.files.finish(manifest, labels, gone)


def column_name(number: int, field: str) -> str:
    """Return the name of a field's file, without its suffix."""
    is_plain = re.fullmatch(r"[a-z][a-z0-9_]{0,60}", field)
    return f"field.{field}" if is_plain else f"field.{number}"


def keys_of(texts: Iterable[str]) -> np.ndarray:
    """Return a hash of each text, uint64. Among ten million texts, the probability that two have
    the same hash is 1 in 370,000."""
    hashes = (blake2b(text, digest_size=8).digest() for text in map(in_utf8, texts))
    return np.frombuffer(b"".join(hashes), "<u8")


def _integers(values: Iterable[int]) -> np.ndarray:
    return np.fromiter(values, dtype=np.int64)
