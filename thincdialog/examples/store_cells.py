"""Encoding of the cells of a store in memory for a store on disk."""

import json
from collections import defaultdict
from itertools import chain, count
from typing import Any, DefaultDict, Tuple

import numpy as np

from ..errors import DataError
from ..files.flat_array import GrowingArray
from ..formats.wording import short
from .first_sight import by_first_sight
from .memory_store import ID, MemoryStore
from .strings import in_utf8
from .table import ARRAY, BITS, FLOATS, JSON, KIND, NO_CELL, ONE, OTHER, STRING, TURNS

# Arrays begin at multiples of this number of bytes.
ALIGNED = 64


class ShardCells:
    """Number the strings and lists of some examples in the order in which they first occur, which
    does not depend on the pieces in which the examples were read. Equal strings get one number, and
    so do equal lists.

    store (MemoryStore): The examples.
    n_strings, n_lists (int): How many the store on disk already has.
    arrays (GrowingArray): Gets the bytes of arrays that cells hold.
    index (GrowingArray): Gets for each of these its first byte, and the number of the string with
        its dtype and shape.

    strings (DefaultDict): The number of each string, in UTF-8.
    lists (DefaultDict): The number of each list of strings or turns.
    """

    def __init__(
        self,
        store: MemoryStore,
        n_strings: int,
        n_lists: int,
        arrays: GrowingArray,
        index: GrowingArray,
    ):
        self.strings: DefaultDict[bytes, int] = defaultdict(count(n_strings).__next__)
        self.lists: DefaultDict[Tuple[int, ...], int] = defaultdict(count(n_lists).__next__)
        self._store, self._arrays, self._index = store, arrays, index

    def column(self, name: str) -> np.ndarray:
        """Return the numbers of one field of all examples; int64.

        name (str): Name of the field.
        RAISES (DataError): If the value of a cell cannot be stored.
        """
        codes = self._store.column(name)
        if codes is None:
            return np.full(self._store.n_examples, NO_CELL)
        of_rows, firsts = by_first_sight(codes)
        cells = zip(codes[firsts].tolist(), firsts.tolist())
        return np.array([self._cell(name, *cell) for cell in cells], dtype=np.int64)[of_rows]

    def _cell(self, name: str, code: int, row: int) -> int:
        number, kind = code >> BITS, code & KIND
        if code == NO_CELL:
            return NO_CELL
        if kind <= ONE or kind == ID:
            string = self.strings[self._store.encoded_string(number, kind)]
            return string << BITS | (STRING if kind == ID else kind)
        if kind == OTHER:
            return self._other(name, self._store.other(number, kind), row)
        begin, end = self._store.list_bounds(number)
        # Of a turn, the lowest bit is not of the string's number.
        n_bits = int(kind == TURNS)
        values = [
            self.strings[self._store.encoded_string(value >> n_bits)] << n_bits | value & n_bits
            for value in self._store.list_values[begin:end].tolist()
        ]
        return self.lists[tuple(values)] << BITS | kind

    def _other(self, name: str, value: Any, row: int) -> int:
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            return self._array(value) << BITS | ARRAY
        if isinstance(value, (list, tuple)) and set(map(type, value)) == {float}:
            return self._array(np.array(value)) << BITS | FLOATS
        if _is_json(value):
            text = json.dumps(value, ensure_ascii=False)
            return self.strings[in_utf8(text)] << BITS | JSON
        (example,) = self._store.cells("id", np.array([row]))
        found = f"'{name}' of example {short(example)} holds {type(value).__name__} {short(value)}"
        hint = "A store keeps strings, numbers, lists, mappings and arrays."
        raise DataError("[loader] store", f"{found}. {hint}")

    def _array(self, array: np.ndarray) -> int:
        content = array.tobytes()
        about = json.dumps([array.dtype.str, list(array.shape)])
        self._index.append([[self._arrays.n_rows, self.strings[in_utf8(about)]]])
        padded = content.ljust(-(-len(content) // ALIGNED) * ALIGNED, b"\0")
        self._arrays.append(np.frombuffer(padded, dtype=np.uint8))
        return self._index.n_rows - 1

    def list_values(self) -> np.ndarray:
        """Return the values of all lists, one after another; int64."""
        return np.fromiter(chain.from_iterable(self.lists), np.int64)


def _is_json(cell: Any) -> bool:
    if isinstance(cell, dict):
        return all(type(key) is str and _is_json(value) for key, value in cell.items())
    if isinstance(cell, (list, tuple)):
        return all(map(_is_json, cell))
    return cell is None or type(cell) in (str, int, float, bool)
