"""The rows that a batch needs often, apart from the weights that workers share."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from .compiled import load_kernels


class Tokens(NamedTuple):
    """Tokens that a kernel looks up in a table.

    table (int): Where it begins in the weights.
    n_rows (int): How many it has.
    ids (Ints1d): The tokens' rows, int32.
    uses (int): How often each is looked up, about.
    """

    table: int
    n_rows: int
    ids: Any
    uses: int = 1


class Placed(NamedTuple):
    """Where a kernel finds what tokens stand for.

    values (Floats1d): The rows lie in it.
    squares (Floats1d): Adagrad's sums; or empty.
    places (List[Ints1d]): Of each table's tokens, where the row of each begins; int64.
    squares_at (List[Ints1d]): And where its sum stands.
    start (int): Where all weights begin in ``values``.
    """

    values: Any
    squares: Any
    places: List[np.ndarray]
    squares_at: List[np.ndarray]
    start: int = 0


def place_rows(values: Any, squares: Any, width: int, tables: Sequence[Tokens]) -> Placed:
    """All rows in the weights themselves, and the sum of each at its first place.

    values (Floats1d): All weights, float32.
    squares (Floats1d): Adagrad's, as long; or empty.
    width (int): Floats in a row.
    tables (Sequence[Tokens]): What is needed.
    """
    places = [table + ids.astype(np.int64) * width for table, _, ids, _ in tables]
    return Placed(values, squares, places, places)


class RowsApart:
    """Copies of rows that one worker changes while others change the weights.

    Rows of frequent words are read and written many times in a batch. If two cores do so
    in the same memory, each waits for the other's cache again and again; with copies they
    meet once a batch. Rows that are needed seldom stay where they are: a copy costs more
    than it spares. (tests/benchmarks/bench_starspace.py shows what it gains.)

    Nothing is kept between batches but the room.

    least (int): Uses in a batch from which on a row is copied.
    """

    def __init__(self, least: int = 4) -> None:
        self.least = least
        self._slots: Dict[int, np.ndarray] = {}
        self._rows, self._sums = np.zeros(0, dtype="f"), np.zeros(0, dtype="f")

    def take(self, values: Any, squares: Any, width: int, tables: Sequence[Tokens]) -> Placed:
        """Copy the rows that some tokens need often.

        values, squares, width, tables: As for ``place_rows``. A table may come twice.
        RETURNS (Placed): Copies and weights, as if they were one array.
        """
        kernels, least, n = load_kernels("apart"), self.least, 0
        for table, n_rows, ids, uses in tables:
            if table not in self._slots:
                self._slots[table] = np.zeros(n_rows, dtype=np.int32)
            n += kernels.count_rows(ids, uses, least, self._slots[table])
        # Room is made seldom: memory fresh from the system costs more than all the rest.
        if len(self._rows) < 2 * n * width:
            self._rows = np.empty(4 * n * width, dtype="f")
        if len(self._sums) < 2 * n:
            self._sums = np.empty(4 * n, dtype="f")
        all_rows, of_weights, of_copies = _as_one(values, self._rows)
        all_squares, of_squares, of_sums = squares, 0, 0
        if len(squares):
            all_squares, of_squares, of_sums = _as_one(squares, self._sums)
        shifts = (of_weights, of_copies, of_squares, of_sums)
        taken, places, squares_at = np.empty(n, dtype=np.int64), [], []
        n = 0
        for table, _, ids, _ in tables:
            places.append(np.empty(len(ids), dtype=np.int64))
            squares_at.append(np.empty(len(ids), dtype=np.int64))
            found = (self._slots[table], taken, n, shifts, places[-1], squares_at[-1])
            n = kernels.place_tokens(ids, table, width, least, *found)
        for table, _, ids, _ in tables:
            kernels.forget_rows(ids, self._slots[table])
        kernels.take_rows(values, squares, taken, width, self._rows, self._sums)
        self._width, self._taken = width, taken
        return Placed(all_rows, all_squares, places, squares_at, of_weights)

    def put_back(self, values: Any, squares: Any) -> None:
        """Add what has changed in the copies since ``take``."""
        load_kernels("apart").put_rows(
            values, squares, self._taken, self._width, self._rows, self._sums
        )


def _as_one(one: Any, other: Any) -> Tuple[Any, int, int]:
    """One array from the beginning of that which lies lower in memory to the end of the
    other, and where each begins in it. What lies between them is nobody's business; with a
    choice between two arrays at every row, the kernel takes 1.8 times as long.
    """
    addresses = [array.__array_interface__["data"][0] for array in (one, other)]
    low = min(addresses)
    starts = [(address - low) // 4 for address in addresses]
    length = max(start + len(array) for start, array in zip(starts, (one, other)))
    lower = one if addresses[0] == low else other
    both = np.lib.stride_tricks.as_strided(lower, shape=(length,))
    return both, starts[0], starts[1]
