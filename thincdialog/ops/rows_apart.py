"""The rows that a batch needs, apart from the weights that workers share."""

from typing import Any, Dict, List, Tuple

import numpy as np

from .compiled import load_kernels


class RowsApart:
    """Copies of rows that one worker changes while others change the weights.

    Rows of frequent words are read and written many times in a batch. If two cores do so
    in the same memory, each waits for the other's cache again and again. On natural text,
    an example of StarSpace (softmax, batches of 128) took 4.0 us in one thread and 6.4 in
    each of two; with the rows apart it took 4.7 and 5.5 (tests/benchmarks/bench_starspace.py).

    Nothing is kept between batches but the room.
    """

    def __init__(self) -> None:
        self._slots: Dict[int, np.ndarray] = {}
        self._places = np.zeros(0, dtype=np.int64)
        self._room = np.zeros((2, 0), dtype="f")

    def take(
        self,
        values: Any,
        squares: Any,
        width: int,
        tables: List[Tuple[int, int, np.ndarray]],
    ) -> Tuple[Any, Any, List[np.ndarray]]:
        """Copy the rows of some tokens.

        values (Floats1d): All weights, float32.
        squares (Floats1d): Adagrad's, of which the first of each row counts; or empty.
        width (int): Floats in a row.
        tables (List[Tuple[int, int, np.ndarray]]): Of each table where it begins, its number
            of rows, and the tokens' rows in it, int32. One may come twice.
        RETURNS (Tuple[Floats1d, Floats1d, List[Ints1d]]): Copies of rows and squares, and
            the tokens' rows in them: one table that begins at 0.
        """
        kernels = load_kernels("apart")
        self.width, self.tables = width, tables
        n_tokens = sum(len(ids) for _, _, ids in tables)
        if len(self._places) < n_tokens:
            self._places = np.empty(2 * n_tokens, dtype=np.int64)
        n, numbers = 0, []
        for table, n_rows, ids in tables:
            if table not in self._slots:
                self._slots[table] = np.zeros(n_rows, dtype=np.int32)
            numbers.append(np.empty(len(ids), dtype=np.int32))
            slots = self._slots[table]
            n = kernels.number_rows(ids, table, width, slots, self._places, n, numbers[-1])
        for table, _, ids in tables:
            kernels.forget_rows(ids, self._slots[table])
        # Room is made seldom: memory fresh from the system costs more than all the rest.
        if self._room.shape[1] < 2 * n * width:
            self._room = np.empty((2, 4 * n * width), dtype="f")
        self.places = self._places[:n]
        kernels.take_rows(values, squares, self.places, width, *self._room)
        copies = self._room[:, : n * width]
        return copies[0], copies[1] if len(squares) else squares, numbers

    def put_back(self, values: Any, squares: Any) -> None:
        """Add what has changed in the copies since ``take``."""
        put_rows = load_kernels("apart").put_rows
        put_rows(values, squares, self.places, self.width, *self._room)
