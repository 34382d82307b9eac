"""Private copies of frequent rows, so that workers do not compete for the shared weights."""

from typing import Any, NamedTuple, Sequence, Tuple

import numpy as np

from .alignment import address, aligned_zeros
from .compiled import load_kernels


class Tokens(NamedTuple):
    """Describe tokens whose rows a kernel looks up in a table.

    table (int): Index of the table's first float in the weights.
    ids (Ints1d): The tokens' rows, int32.
    uses (int): Approximate number of look-ups of each token.
    """

    table: int
    ids: Any
    uses: int = 1


class FoundTokens(NamedTuple):
    """Describe tokens, and the addresses at which a kernel finds their rows.

    ids (Ints1d): The tokens' rows, as in ``Tokens``.
    first (int): Number of the table's first row among all rows of the weights.
    rows, numbers (Ints1d): A hash table from rows to copies: the row of each entry, and the number
        of its copy. A row's entry is its number modulo the length of these arrays. Empty if no row
        has a copy.
    weights, squares (int): Addresses of the table in the weights, and in Adagrad's sums.
    copies, sums (int): Addresses of the copies of rows, and of the copies of sums.
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
    """Hold the arrays that ``meet`` in ``ops/kernels/apart.py`` merges.

    width (int): Floats in a row.
    values (Floats1d): All weights, float32.
    squares (Floats1d): Adagrad's sums, of the same length; the sum of a row is at the index of the
        row's first float. Or empty.
    places (Ints1d): Index in the weights of each row that has a copy; int64.
    rows (Floats3d): The copies now, and at the last merge; shape (2, n, width).
    sums (Floats3d): Adagrad's sums of these rows now, and at the last merge; shape (2, n, 1).
    """

    width: int
    values: Any
    squares: Any
    places: Any
    rows: Any
    sums: Any


class RowsApart:
    """Keep copies of rows that one worker changes while other workers change the weights.

    Rows of frequent words are read and written many times in a batch. If two cores do so in the
    same memory, each waits for the other's cache every time. With copies, they exchange their
    changes once per batch. Rare rows have no copy.

    least (int): Number of uses in a batch from which on a row gets a copy; 0 for no copies, if no
        other worker trains. Rows are selected in every 16th batch, for the batches up to the next
        selection.
    """

    EVERY = 16
    # Small enough for a core's first-level cache, because a batch looks up all its tokens here.
    N_ENTRIES = 2048

    def __init__(self, least: int = 16) -> None:
        self.least, self._n_batches = least, 0
        self._entries, self._places = np.zeros((2, 0), dtype="i"), np.zeros(0, dtype="q")
        self._rows: Any = np.zeros((2, 0, 0), dtype="f")
        self._sums: Any = self._rows

    def prepare(
        self, values: Any, squares: Any, width: int, tables: Sequence[Tokens]
    ) -> Tuple[Copies, Tuple[FoundTokens, ...]]:
        """Return the arguments for a kernel that ends with ``meet``.

        values, squares, width: See ``Copies``; pass the same weights in each call.
        tables (Sequence[Tokens]): Tokens of the batch; a table may occur twice.
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
