"""Copies of the rows that batches need often, apart from the weights that workers share."""

from typing import Any, NamedTuple, Sequence, Tuple

import numpy as np

from .alignment import address, aligned_zeros
from .compiled import load_kernels


class Tokens(NamedTuple):
    """Tokens that a kernel looks up in a table.

    table (int): Where it begins in the weights.
    ids (Ints1d): The tokens' rows, int32.
    uses (int): How often each is looked up, about.
    """

    table: int
    ids: Any
    uses: int = 1


class FoundTokens(NamedTuple):
    """Tokens, and the addresses from which a kernel finds what they stand for.

    ids (Ints1d): As of ``Tokens``.
    slots (Ints1d): The number of each row's copy, negative if it has none; empty if no row has.
    weights, squares (int): The table in the weights, and in Adagrad's sums.
    copies, sums (int): The copies of rows, and of sums.
    """

    ids: Any
    slots: Any
    weights: int
    squares: int
    copies: int
    sums: int


class Copies(NamedTuple):
    """What ``meet`` in ``ops/kernels/apart.py`` brings together.

    width (int): Floats in a row.
    values (Floats1d): All weights, float32.
    squares (Floats1d): Adagrad's sums, as long, each at its row's first place; or empty.
    places (Ints1d): Where the rows that have copies begin in these; int64.
    rows (Floats3d): The copies as they are and as they were; shape (2, n, width).
    sums (Floats3d): The same of their sums; shape (2, n, 1).
    """

    width: int
    values: Any
    squares: Any
    places: Any
    rows: Any
    sums: Any


class RowsApart:
    """Copies of rows that one worker changes while others change the weights.

    Rows of frequent words are read and written many times in a batch. Two cores that do so in
    the same memory wait for each other's cache again and again. With copies, they exchange what
    has changed once a batch. Rare rows have no copy.

    least (int): A row gets a copy if a batch needs it so often; 0 for never, where nobody else
        learns. Every 16th batch decides for those that follow, too.
    """

    EVERY = 16

    def __init__(self, least: int = 4) -> None:
        self.least, self._n_batches = least, 0
        self._slots, self._places = np.zeros(0, dtype="i"), np.zeros(0, dtype="q")
        self._rows: Any = np.zeros((2, 0, 0), dtype="f")
        self._sums: Any = self._rows

    def prepare(
        self, values: Any, squares: Any, width: int, tables: Sequence[Tokens]
    ) -> Tuple[Copies, Tuple[FoundTokens, ...]]:
        """Returns what a kernel takes that begins and ends with ``meet``.

        values, squares, width: See ``Copies``; the same weights at each call.
        tables (Sequence[Tokens]): What the batch needs; a table may come twice.
        """
        if self.least:
            if self._n_batches % self.EVERY == 0:
                self._choose(len(values), width, tables)
            self._n_batches += 1
        arrays = values, squares, self._rows, self._sums
        starts = [address(each) for each in arrays]

        def find(tokens: Tokens) -> FoundTokens:
            slots, begin = self._slots[tokens.table // width :], 4 * tokens.table
            of_weights = starts[0] + begin, starts[1] + begin
            return FoundTokens(tokens.ids, slots, *of_weights, *starts[2:])

        copies = Copies(width, values, squares, self._places, self._rows, self._sums)
        return copies, tuple(map(find, tables))

    def _choose(self, n_values: int, width: int, tables: Sequence[Tokens]) -> None:
        self._slots = np.empty(n_values // width + 1, dtype="i")
        places = np.empty(sum(len(each.ids) for each in tables), dtype="q")
        n = load_kernels("apart").choose(tuple(tables), width, self.least, self._slots, places)
        self._places = places[:n]
        floats: Any = aligned_zeros(2 * n * (width + 1))
        self._rows = floats[: 2 * n * width].reshape(2, n, width)
        self._sums = floats[2 * n * width :].reshape(2, n, 1)
