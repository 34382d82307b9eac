"""Encode the cells of a store in memory as they are stored on disk."""

import json
from collections import defaultdict
from itertools import count
from typing import Any, DefaultDict, Tuple

import numpy as np

from ..errors import DataError
from ..formats.wording import short
from ..messages import PARTNER, SELF
from .first_sight import by_first_sight
from .memory_store import ID, MemoryStore
from .strings import in_utf8
from .table import ARRAY, BITS, FLOATS, JSON, KIND, NO_CELL, ONE, OTHER, STRING, TURNS


class DiskCells:
    """Encode the cells of a shard. Strings and lists are numbered in the order in which they first
    occur, so that their numbers do not depend on the pieces in which the examples were read.

    store (MemoryStore): The examples of the shard.
    first_string, first_list (int): Number of the shard's first string, and of its first list.

    strings (DefaultDict[bytes, int]): Number of each string, in UTF-8. Looking up a new string adds
        it.
    lists (DefaultDict[Tuple[int, ...], int]): Number of each list, by its items.
    """

    def __init__(self, store: MemoryStore, first_string: int, first_list: int):
        self.store = store
        self.strings: DefaultDict[bytes, int] = defaultdict(count(first_string).__next__)
        self.lists: DefaultDict[Tuple[int, ...], int] = defaultdict(count(first_list).__next__)

    def column(self, name: str) -> np.ndarray:
        """Return the number of each cell of a field, int64.

        RAISES (DataError): If the value of a cell cannot be stored.
        """
        codes = self.store.column(name)
        if codes is None:
            return np.full(self.store.n_examples, NO_CELL)
        of_rows, firsts = by_first_sight(codes)
        cells = zip(codes[firsts].tolist(), firsts.tolist())
        numbers = [self._cell(name, *cell) for cell in cells]
        return np.array(numbers, dtype=np.int64)[of_rows]

    def _cell(self, name: str, code: int, row: int) -> int:
        number, kind = code >> BITS, code & KIND
        if code == NO_CELL:
            return NO_CELL
        if kind <= ONE or kind == ID:
            string = self.strings[self.store.encoded_string(number, kind)]
            return string << BITS | (STRING if kind == ID else kind)
        if kind == OTHER:
            return self._other(name, self.store.other(number, kind), row)
        begin, end = self.store.list_bounds(number)
        strings, encoded = self.strings, self.store.strings.encoded
        items = self.store.list_values[begin:end].tolist()
        items = tuple(strings[encoded(item >> 1)] << 1 | item & 1 for item in items)
        return self.lists[items] << BITS | kind

    def _other(self, name: str, value: Any, row: int) -> int:
        strings = self.strings
        if name == "context" and _are_turns(value):
            items = tuple(strings[in_utf8(text)] << 1 | int(role) for role, text in value)
            return self.lists[items] << BITS | TURNS
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            return strings[_array(value)] << BITS | ARRAY
        if isinstance(value, (list, tuple)) and set(map(type, value)) == {float}:
            return strings[_array(np.array(value))] << BITS | FLOATS
        if _is_json(value):
            return strings[in_utf8(json.dumps(value, ensure_ascii=False))] << BITS | JSON
        (example,) = self.store.cells("id", np.array([row]))
        found = f"'{name}' of example {short(example)} holds {type(value).__name__} {short(value)}"
        hint = "A store keeps strings, numbers, lists, mappings and arrays."
        raise DataError("[loader] store", f"{found}. {hint}")


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
