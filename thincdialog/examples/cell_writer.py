"""Write the values of a store's cells to disk: strings, lists and arrays."""

import json
from array import array
from collections import defaultdict
from itertools import count
from typing import Any, DefaultDict

import numpy as np

from ..errors import DataError
from ..files.growing_folder import GrowingFolder
from ..formats.wording import short
from ..messages import PARTNER, SELF
from .first_sight import by_first_sight
from .memory_store import ID, MemoryStore
from .strings import in_utf8
from .table import ARRAY, BITS, FLOATS, JSON, KIND, NO_CELL, ONE, OTHER, STRING, TURNS

# Arrays begin at multiples of this number of bytes.
ALIGNED = 64


class GrowingSlices:
    """Write slices of an array, shard by shard. Within a shard, equal slices share one number.
    Slices are numbered in the order in which they first occur, so that their numbers do not
    depend on the pieces in which the examples were read.

    files (GrowingFolder): Folder of the array.
    name (str): Name of the array's file; the starts of the slices are in ``NAME.starts``.
    dtype (str): Type of the values.

    numbers (DefaultDict[bytes, int]): Number of each slice of the current shard, by its content.
        Looking up a new slice adds it.
    """

    def __init__(self, files: GrowingFolder, name: str, dtype: str):
        self._values, self._starts = files.array(name, dtype), files.array(f"{name}.starts", "<i8")
        if not self._starts.n_rows:
            self._starts.append([0])
        self._begin()

    def _begin(self) -> None:
        first = self._starts.n_rows - 1
        self.numbers: DefaultDict[bytes, int] = defaultdict(count(first).__next__)

    def flush(self) -> None:
        """Write the slices of this shard, and begin the next one."""
        sizes = np.array(list(map(len, self.numbers)), dtype=np.int64)
        ends = sizes.cumsum() // self._values.dtype.itemsize
        self._starts.append(self._values.n_rows + ends)
        self._values.append(np.frombuffer(b"".join(self.numbers), self._values.dtype))
        self._begin()


class CellWriter:
    """Write the strings, lists and arrays of a store, shard by shard.

    files (GrowingFolder): Folder of the store.
    strings (GrowingSlices): The strings in UTF-8.
    lists (GrowingSlices): The lists, as numbers of strings or turns.
    """

    def __init__(self, files: GrowingFolder):
        self.strings = GrowingSlices(files, "strings", "|u1")
        self.lists = GrowingSlices(files, "lists", "<i8")
        self._arrays = files.array("arrays", "|u1")
        self._index = files.array("arrays.index", "<i8", 2)

    def column(self, store: MemoryStore, name: str) -> np.ndarray:
        """Return the number of each cell of a field, int64, and add the values of these cells to
        the files.

        store (MemoryStore): The examples.
        name (str): Name of the field.
        RAISES (DataError): If the value of a cell cannot be stored.
        """
        codes = store.column(name)
        if codes is None:
            return np.full(store.n_examples, NO_CELL)
        of_rows, firsts = by_first_sight(codes)
        cells = zip(codes[firsts].tolist(), firsts.tolist())
        numbers = [self._cell(store, name, *cell) for cell in cells]
        return np.array(numbers, dtype=np.int64)[of_rows]

    def _cell(self, store: MemoryStore, name: str, code: int, row: int) -> int:
        number, kind = code >> BITS, code & KIND
        if code == NO_CELL:
            return NO_CELL
        if kind <= ONE or kind == ID:
            string = self.strings.numbers[store.encoded_string(number, kind)]
            return string << BITS | (STRING if kind == ID else kind)
        if kind == OTHER:
            return self._other(store, name, store.other(number, kind), row)
        begin, end = store.list_bounds(number)
        # The lowest bit of a turn is its speaker; the other bits are the number of its string.
        n_bits = int(kind == TURNS)
        strings = self.strings.numbers
        values = [
            strings[store.encoded_string(value >> n_bits)] << n_bits | value & n_bits
            for value in store.list_values[begin:end].tolist()
        ]
        return self.lists.numbers[array("q", values).tobytes()] << BITS | kind

    def _other(self, store: MemoryStore, name: str, value: Any, row: int) -> int:
        if name == "context" and _are_turns(value):
            strings = self.strings.numbers
            turns = [strings[in_utf8(text)] << 1 | int(role) for role, text in value]
            return self.lists.numbers[array("q", turns).tobytes()] << BITS | TURNS
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            return self._array(value) << BITS | ARRAY
        if isinstance(value, (list, tuple)) and set(map(type, value)) == {float}:
            return self._array(np.array(value)) << BITS | FLOATS
        if _is_json(value):
            text = json.dumps(value, ensure_ascii=False)
            return self.strings.numbers[in_utf8(text)] << BITS | JSON
        (example,) = store.cells("id", np.array([row]))
        found = f"'{name}' of example {short(example)} holds {type(value).__name__} {short(value)}"
        hint = "A store keeps strings, numbers, lists, mappings and arrays."
        raise DataError("[loader] store", f"{found}. {hint}")

    def _array(self, values: np.ndarray) -> int:
        content = values.tobytes()
        about = json.dumps([values.dtype.str, list(values.shape)])
        self._index.append([[self._arrays.n_rows, self.strings.numbers[in_utf8(about)]]])
        padded = content.ljust(-(-len(content) // ALIGNED) * ALIGNED, b"\0")
        self._arrays.append(np.frombuffer(padded, dtype=np.uint8))
        return self._index.n_rows - 1


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
