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
    """Tokens, and the addresses from which a kernel finds their rows.

    ids (Ints1d): As of ``Tokens``.
    first (int): The number of the table's first row among all rows of the weights.
    rows, numbers (Ints1d): The row that an entry is for, and the number of its copy; a row's
        entry is the remainder of its number by their length. Empty if no row has a copy.
    weights, squares (int): The table in the weights, and in Adagrad's sums.
    copies, sums (int): The copies of rows, and of sums.
    """

    ids: Any
    first: int
    rows: Any
    numbers: Any
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
    the same memory wait for each other's cache again and again. With copies, they exchange the
    changes once a batch. Rare rows have no copy.

    least (int): A row gets a copy if a batch needs it so often; 0 for never, where no other worker
        learns. Every 16th batch decides for those that follow, too.
    """

    EVERY = 16
    # Fit in a core's nearest cache: a batch looks up all its tokens.
    N_ENTRIES = 2048

    def __init__(self, least: int = 16) -> None:
        self.least, self._n_batches = least, 0
        self._entries, self._places = np.zeros((2, 0), dtype="i"), np.zeros(0, dtype="q")
        self._rows: Any = np.zeros((2, 0, 0), dtype="f")
        self._sums: Any = self._rows

    def prepare(
        self, values: Any, squares: Any, width: int, tables: Sequence[Tokens]
    ) -> Tuple[Copies, Tuple[FoundTokens, ...]]:
        """Returns what a kernel takes that ends with ``meet``.

        values, squares, width: See ``Copies``; the same weights at each call.
        tables (Sequence[Tokens]): What the batch needs; a table may come twice.
        """
        if self.least:
            if self._n_batches % self.EVERY == 0:
                self._choose(values, squares, width, tables)
            self._n_batches += 1
        arrays = values, squares, self._rows, self._sums
        starts = [address(each) for each in arrays]
        rows, numbers = self._entries

        def find(tokens: Tokens) -> FoundTokens:
            begin, first = 4 * tokens.table, tokens.table // width
            of_weights = starts[0] + begin, starts[1] + begin
            return FoundTokens(tokens.ids, first, rows, numbers, *of_weights, *starts[2:])

        return self._copies(values, squares, width), tuple(map(find, tables))

    def _copies(self, values: Any, squares: Any, width: int) -> Copies:
        return Copies(width, values, squares, self._places, self._rows, self._sums)

    def _choose(self, values: Any, squares: Any, width: int, tables: Sequence[Tokens]) -> None:
        self._entries = np.empty((2, self.N_ENTRIES), dtype="i")
        places = np.empty(sum(len(each.ids) for each in tables), dtype="q")
        kernels = load_kernels("apart")
        n = kernels.choose(tuple(tables), width, self.least, *self._entries, places)
        self._places = places[:n]
        floats: Any = aligned_zeros(2 * n * (width + 1))
        self._rows = floats[: 2 * n * width].reshape(2, n, width)
        self._sums = floats[2 * n * width :].reshape(2, n, 1)
        kernels.meet(self._copies(values, squares, width))
