"""Write a store of examples to disk, shard by shard."""

import json
import re
from collections import defaultdict
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any, Callable, DefaultDict, Dict, Iterable, List, Sequence

import numpy as np

from ..errors import DataError
from ..files.shard_folder import ShardFolder
from ..formats.wording import short
from ..messages import PARTNER, SELF
from .memory_store import MemoryStore
from .store import NO_LABEL
from .strings import in_utf8
from .table import ARRAY, BITS, FLOATS, JSON, NO_CELL, OTHER, TURNS, Excerpt, by_first_sight


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
        return self.files.n_rows["label_ids"]

    def add(self, store: MemoryStore, next: Any) -> None:
        """Append the episodes of a store.

        store (MemoryStore): The episodes to append.
        next (Any): Position in the source after these episodes, as JSON.
        RAISES (DataError): If an example has a value that a store cannot hold.
        RAISES (OSError): If the store cannot be written.
        """
        n, ends, fields = self.files.n_rows, self.files.ends, self._fields
        fields += (name for name in store.fields if name not in fields)
        firsts = (max(0, n[f"{name}.starts"] - 1) for name in ("strings", "lists"))
        cells = _Cells(store, fields, *firsts)
        arrays = {}
        for number, (name, column) in enumerate(zip(fields, cells.columns)):
            file = column_name(number, name)
            # Earlier rows lack a new field.
            missing = np.full(self.n_rows - n[file], NO_CELL)
            arrays[file] = np.concatenate((missing, column))
        labels = list(map(in_utf8, store.label_texts))
        arrays["labels"] = _integers(cells.strings[label] for label in labels)
        # Labels are numbered at the end, by their hashes. Until then, each shard has its own. Among
        # ten million labels, the probability that two have the same hash is 1 in 370,000.
        hashes = (blake2b(label, digest_size=8).digest() for label in labels)
        arrays["label_keys"] = np.frombuffer(b"".join(hashes), "<u8")
        has_label = store.label_ids != NO_LABEL
        label_ids = np.where(has_label, store.label_ids + n["labels"], NO_LABEL)
        arrays["label_ids"] = label_ids.astype("<i4")
        arrays["starts"] = ends("starts", np.diff(store.starts), "label_ids")
        ids = [] if store.ids is None else store.ids.slices(np.arange(store.n_examples))
        texts = {"ids": ids, "strings": cells.strings}
        for name, values in {**texts, "lists": cells.lists}.items():
            arrays[name] = np.frombuffer(b"".join(values), "u1" if name in texts else "<i8")
            lengths = _integers(map(len, values)) // arrays[name].itemsize
            arrays[f"{name}.starts"] = ends(f"{name}.starts", lengths, name)
        self.files.add(arrays, {"fields": fields, "next": next})
        self.next = next

    def finish(
        self, about: Dict[str, Any], check: Callable[[Path], Any] = lambda folder: None
    ) -> None:
        """Complete the store, and move it to its final path.

        about (Dict[str, Any]): Further entries of the manifest.
        check (Callable): Called with the folder of the complete store before it is moved. If it
            raises an error, the store is not moved.
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
        gone = ["label_keys"] + ["starts"] * (n_episodes == self.n_rows)
        labels = {"labels": column("labels")[firsts], "label_ids": label_ids}
        self.files.finish(manifest, labels, gone, check)


class _Cells:
    """Number the cells of a shard as they are stored on disk. Strings and lists are numbered in the
    order in which they first occur, and equal ones have one number, so that the numbers do not
    depend on the pieces in which the examples were read.

    store (MemoryStore): The examples of the shard.
    fields (Sequence[str]): Names of the fields, except the id.
    first_string, first_list (int): Number of the shard's first string, and of its first list.

    strings (DefaultDict[bytes, int]): Number of each string, in UTF-8.
    lists (DefaultDict[bytes, int]): Number of each list, by the bytes of its items.
    columns (np.ndarray): Number of each cell, shape (n_fields, n_rows), int64.
    RAISES (DataError): If the value of a cell cannot be stored.
    """

    def __init__(
        self, store: MemoryStore, fields: Sequence[str], first_string: int, first_list: int
    ):
        part = Excerpt(store, fields, np.arange(store.n_examples))
        self.strings: DefaultDict[bytes, int] = defaultdict(count(first_string).__next__)
        self.lists: DefaultDict[bytes, int] = defaultdict(count(first_list).__next__)
        strings = _integers(self.strings[text] for text in store.strings.slices(part.strings))
        items, ends = part.items + 2 * first_string, part.lengths.cumsum()
        slices = zip((ends - part.lengths).tolist(), ends.tolist())
        lists = _integers(self.lists[items[start:end].tobytes()] for start, end in slices)
        others = []
        for number, first in zip(part.others.tolist(), part.firsts.tolist()):
            field, row = divmod(first, store.n_examples)
            others.append(self._other(store, fields[field], row, store.other(number, OTHER)))
        self.columns = part.columns(strings, lists, others)

    def _other(self, store: MemoryStore, name: str, row: int, value: Any) -> int:
        """Return the number of a cell that is neither a string nor a list of strings."""
        strings = self.strings
        if name == "context" and _are_turns(value):
            items = [strings[in_utf8(text)] << 1 | int(role) for role, text in value]
            return self.lists[np.array(items, dtype=np.int64).tobytes()] << BITS | TURNS
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            return strings[_array(value)] << BITS | ARRAY
        if isinstance(value, (list, tuple)) and set(map(type, value)) == {float}:
            return strings[_array(np.array(value))] << BITS | FLOATS
        if _is_json(value):
            return strings[in_utf8(json.dumps(value, ensure_ascii=False))] << BITS | JSON
        (example,) = store.cells("id", np.array([row]))
        found = f"'{name}' of example {short(example)} holds {type(value).__name__} {short(value)}"
        hint = "A store keeps strings, numbers, lists, mappings and arrays."
        raise DataError("[loader] store", f"{found}. {hint}")


def column_name(number: int, field: str) -> str:
    """Return the name of a field's file, without its suffix."""
    is_plain = re.fullmatch(r"[a-z][a-z0-9_]{0,60}", field)
    return f"field.{field}" if is_plain else f"field.{number}"


def _integers(values: Iterable[int]) -> np.ndarray:
    return np.fromiter(values, dtype=np.int64)


def _array(values: np.ndarray) -> bytes:
    """Return the type and the shape of an array as JSON, and its bytes after a newline."""
    about = json.dumps([values.dtype.str, list(values.shape)])
    return about.encode() + b"\n" + values.tobytes()


def _are_turns(value: Any) -> bool:
    """Return whether a context is made of turns, which a user may have given as lists."""
    return isinstance(value, (list, tuple)) and all(
        isinstance(turn, (list, tuple))
        and len(turn) == 2
        and turn[0] in (PARTNER, SELF)
        and type(turn[1]) is str
        for turn in value
    )


def _is_json(cell: Any) -> bool:
    if isinstance(cell, dict):
        return all(type(key) is str and _is_json(value) for key, value in cell.items())
    if isinstance(cell, (list, tuple)):
        return all(map(_is_json, cell))
    return cell is None or type(cell) in (str, int, float, bool)
