"""Encoding of the cells of a table in memory for a store on disk."""

import json
from collections import defaultdict
from itertools import chain, count
from typing import Any, DefaultDict, List, Tuple

import numpy as np

from ..errors import DataError
from ..formats.wording import short
from ..messages import PARTNER, SELF
from .strings import in_bytes
from .table import BITS, NO_CELL, ONE, OTHER, STRING, STRINGS, TURNS, Table

# Kinds of other values: an array; a list of floats, saved as an array; JSON, saved as a string.
ARRAY, FLOATS, JSON = range(OTHER, OTHER + 3)
# Arrays begin at multiples of this number of bytes.
ALIGNED = 64


class ShardCells:
    """Number the strings, lists and arrays of some examples; equal strings get one number, and
    so do equal lists.

    n_strings, n_lists, n_arrays, n_bytes (int): How many the store already has; bytes are those
        of arrays.
    """

    def __init__(self, n_strings: int, n_lists: int, n_arrays: int, n_bytes: int):
        self._strings: DefaultDict[str, int] = defaultdict(count(n_strings).__next__)
        self._lists: DefaultDict[Tuple[int, ...], int] = defaultdict(count(n_lists).__next__)
        self._n_arrays, self._n_bytes = n_arrays, n_bytes
        self._arrays: List[Tuple[int, int]] = []
        self._bytes: List[bytes] = []

    def column(self, name: str, store: Table) -> np.ndarray:
        """Return the numbers of one field of all examples; int64.

        name (str): Name of the field.
        RAISES (DataError): If the value of a cell cannot be stored.
        """
        codes = store.column(name)
        if codes is None:
            return np.full(store.n_examples, NO_CELL)
        different, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
        order = firsts.argsort()
        cells, ids = (store.cells(each, firsts[order]) for each in (name, "id"))
        of_cell = self._turns if name == "context" else self._cell
        numbers = np.empty(len(order), dtype=np.int64)
        numbers[order] = [
            NO_CELL if cell is None else of_cell(name, cell, example)
            for cell, example in zip(cells, ids)
        ]
        return numbers[places]

    def string(self, text: str) -> int:
        """Return the number of a string."""
        return self._strings[text]

    def _cell(self, name: str, cell: Any, example: Any) -> int:
        if type(cell) is str:
            return self._strings[cell] << BITS | STRING
        if isinstance(cell, np.ndarray) and cell.dtype.kind in "biuf":
            return self._array(cell) << BITS | ARRAY
        if isinstance(cell, (list, tuple)):
            if len(cell) == 1 and type(cell[0]) is str:
                return self._strings[cell[0]] << BITS | ONE
            return self._list(name, cell, example)
        return self._json(name, cell, example)

    def _list(self, name: str, cell: Any, example: Any) -> int:
        kinds = set(map(type, cell))
        if kinds <= {str}:
            return self._lists[tuple([self._strings[text] for text in cell])] << BITS | STRINGS
        if kinds == {float}:
            return self._array(np.array(cell)) << BITS | FLOATS
        return self._json(name, cell, example)

    def _turns(self, name: str, cell: Any, example: Any) -> int:
        try:
            turns = [
                2 * self._strings[text] + (PARTNER, SELF).index(role)
                for role, text in cell
                if type(text) is str or self._refuse(name, text, example)
            ]
        except (TypeError, ValueError):
            return self._json(name, cell, example)
        return self._lists[tuple(turns)] << BITS | TURNS

    def _array(self, array: np.ndarray) -> int:
        content = np.ascontiguousarray(array).tobytes()
        about = json.dumps([array.dtype.str, list(array.shape)])
        self._arrays.append((self._n_bytes, self._strings[about]))
        padded = content.ljust(-(-len(content) // ALIGNED) * ALIGNED, b"\0")
        self._bytes.append(padded)
        self._n_bytes += len(padded)
        self._n_arrays += 1
        return self._n_arrays - 1

    def _json(self, name: str, cell: Any, example: Any) -> int:
        if not _is_json(cell):
            self._refuse(name, cell, example)
        return self._strings[json.dumps(cell, ensure_ascii=False)] << BITS | JSON

    def _refuse(self, name: str, cell: Any, example: Any) -> bool:
        found = f"'{name}' of example {short(example)} holds {type(cell).__name__} {short(cell)}"
        hint = "A store keeps strings, numbers, lists, mappings and arrays."
        raise DataError("[loader] store", f"{found}. {hint}")

    # --- output -------------------------------------------------------------------------

    def strings(self) -> Tuple[bytes, np.ndarray]:
        """Return all strings in UTF-8, one after another, and the size of each in bytes; int64."""
        return in_bytes(self._strings)

    def lists(self) -> Tuple[np.ndarray, np.ndarray]:
        """Return the values of all lists, one after another, and the length of each; int64."""
        lengths = np.fromiter(map(len, self._lists), np.int64, len(self._lists))
        values = np.fromiter(chain.from_iterable(self._lists), np.int64, int(lengths.sum()))
        return values, lengths

    def arrays(self) -> Tuple[bytes, np.ndarray]:
        """Return the bytes of all arrays, and for each array its start and the number of the
        string with its dtype and shape; shape (n, 2), int64."""
        return b"".join(self._bytes), np.array(self._arrays, dtype=np.int64).reshape(-1, 2)


def _is_json(cell: Any) -> bool:
    if isinstance(cell, dict):
        return all(type(key) is str and _is_json(value) for key, value in cell.items())
    if isinstance(cell, (list, tuple)):
        return all(map(_is_json, cell))
    return cell is None or type(cell) in (str, int, float, bool)
