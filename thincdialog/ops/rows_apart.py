"""The rows that a batch needs often, apart from the weights that workers share."""

import math
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .alignment import address, aligned_zeros

_NO_SLOTS = np.zeros(0, dtype=np.int32)


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


class Weights(NamedTuple):
    """What ``ops/kernels/apart.py`` makes of weights and room for copies.

    values (Floats1d): All weights, float32.
    squares (Floats1d): Adagrad's sums, as long, each at its row's first place; or empty.
    all_values, all_squares (Floats1d): The same and the room, as if they were one array.
    starts (Tuple[int, int, int, int]): Where in these the weights begin, and the copies of
        rows; the squares, and the copies of sums.
    rows, sums (Floats1d): The room.
    width (int): Floats in a row.
    least (int): Uses in a batch from which on a row is copied; 0 for never.
    """

    values: Any
    squares: Any
    all_values: Any
    all_squares: Any
    starts: Tuple[int, int, int, int]
    rows: Any
    sums: Any
    width: int
    least: int


class Places(NamedTuple):
    """Tokens, and where a kernel finds what they stand for.

    table, ids, uses: As in ``Tokens``.
    slots (Ints1d): A zero for each row of the table, int32; empty if nothing is copied.
    at (Ints1d): Of each token where its row begins in ``all_values``; int64, written.
    squares_at (Ints1d): And where its sum stands in ``all_squares``.
    """

    table: int
    ids: Any
    uses: int
    slots: Any
    at: np.ndarray
    squares_at: np.ndarray


class RowsApart:
    """Copies of rows that one worker changes while others change the weights.

    Rows of frequent words are read and written many times in a batch. Two cores that do so in
    the same memory wait for each other's cache again and again; with copies they meet once a
    batch. Rows needed seldom stay. (tests/benchmarks/bench_starspace.py shows the gain.)

    Between batches the room is kept, and whose it was; a copy of this begins without.

    least (int): Uses in a batch from which on a row is copied; 0 where nobody else learns.
    """

    def __init__(self, least: int = 4) -> None:
        self.least = least
        self._slots: Dict[int, np.ndarray] = {}
        self._weights: Optional[Weights] = None

    def __reduce__(self) -> Tuple[Any, ...]:
        return RowsApart, (self.least,)

    def prepare(
        self, values: Any, squares: Any, width: int, tables: Sequence[Tokens]
    ) -> Tuple[Weights, Tuple[Places, ...]]:
        """What a kernel takes that begins with ``apart.take`` and ends with ``put_back``.

        values (Floats1d): All weights, float32.
        squares (Floats1d): Adagrad's, as long; or empty.
        width (int): Floats in a row.
        tables (Sequence[Tokens]): What is needed; a table may come twice.
        """
        if not self.least:
            nothing = np.zeros(0, dtype="f")
            whole = (values, squares, values, squares, (0, 0, 0, 0))
            weights = Weights(*whole, nothing, nothing, width, 0)
            return weights, tuple(self._places(each) for each in tables)
        # As many rows at most: the uses of each come to ``least``, and no table has more.
        n = math.ceil(sum(len(each.ids) * min(1, each.uses / self.least) for each in tables))
        n = min(n, sum({each.table: each.n_rows for each in tables}.values()))
        known = self._weights
        if (
            known is None
            or known.values is not values
            or not (known.squares is squares or len(known.squares) == len(squares) == 0)
            or known.width != width
            or len(known.rows) < 2 * n * width
        ):
            self._slots.clear()
            # For twice as many rows as are needed: room is made seldom, as memory fresh from
            # the system costs more than all the rest.
            rows, sums = aligned_zeros(4 * n * width), aligned_zeros(4 * n)
            all_values, *of_rows = _as_one(values, rows)
            all_squares, *of_sums = _as_one(squares, sums) if len(squares) else (squares, 0, 0)
            starts: Any = (*of_rows, *of_sums)
            whole = (values, squares, all_values, all_squares, starts)
            known = self._weights = Weights(*whole, rows, sums, width, self.least)
        return known, tuple(self._places(each) for each in tables)

    def _places(self, tokens: Tokens) -> Places:
        table, n_rows, ids, uses = tokens
        at = np.empty(len(ids), dtype=np.int64)
        if not self.least:  # A sum stands at its row's first place.
            return Places(table, ids, uses, _NO_SLOTS, at, at)
        if table not in self._slots:
            self._slots[table] = np.zeros(n_rows, dtype=np.int32)
        return Places(table, ids, uses, self._slots[table], at, np.empty_like(at))


def _as_one(one: Any, other: Any) -> Tuple[Any, int, int]:
    """One array from the beginning of the lower one in memory to the end of the other, and where
    each begins in it. (Choosing between two at every row takes a kernel 1.8 times as long.)"""
    addresses = [address(one), address(other)]
    starts = [(each - min(addresses)) // 4 for each in addresses]
    length = max(start + len(array) for start, array in zip(starts, (one, other)))
    lower = one if starts[0] == 0 else other
    both = np.lib.stride_tricks.as_strided(lower, shape=(length,))
    return both, starts[0], starts[1]
