"""Copies of rows that a worker changes in place of the weights that all share: which rows they are,
where a token finds its own, and how the copies meet the weights (see ``ops/rows_apart.py``)."""

from typing import Any

import numpy as np

from .kernel import kernel
from .vectors import place


@kernel
def choose(tables: Any, width: int, least: int, rows: Any, numbers: Any, places: Any) -> int:
    """Number the rows that a batch needs often. Of two that share an entry, the first gets it.

    tables (Tuple[Tokens, ...]): The batch's tokens.
    width (int): Floats in a row.
    least (int): Uses from which on a row is one of them, 127 at most.
    rows, numbers (Ints1d): Each entry's row of the weights, negative if it has none, and the
        number of that row; a power of 2 of entries, int32, written.
    places (Ints1d): Where the rows with a number begin in the weights; int64, written.
    RETURNS (int): How many they are.
    """
    n_rows, n = 0, 0
    for tokens in tables:
        for row in tokens.ids:
            n_rows = max(n_rows, tokens.table // width + row + 1)
    uses = np.zeros(n_rows, np.int8)
    for tokens in tables:
        own = uses[tokens.table // width :]
        for row in tokens.ids:  # No further than needed: no count overflows.
            own[row] = min(own[row] + tokens.uses, least)
    rows[:] = -1
    for tokens in tables:
        first = tokens.table // width
        for row in tokens.ids:
            entry = (first + row) & (len(rows) - 1)
            if rows[entry] < 0 and uses[first + row] == least:
                rows[entry], numbers[entry] = first + row, n
                places[n] = place(tokens.table, row, width)
                n += 1
    return n


@kernel
def rows_of(tokens: Any, width: int) -> Any:
    """Addresses of the rows of tokens: of the copy of a row if it has one, else of the row.

    tokens (FoundTokens): The tokens.
    width (int): Floats in a row.
    RETURNS (Ints1d): An address for each token, int64.
    """
    return _find(tokens, tokens.weights, width, tokens.copies, width)


@kernel
def sums_of(tokens: Any, width: int) -> Any:
    """Addresses of Adagrad's sums of the same."""
    return _find(tokens, tokens.squares, width, tokens.sums, 1)


@kernel
def _find(tokens: Any, table: int, width: int, copies: int, step: int) -> Any:
    ids, rows, numbers = tokens.ids, tokens.rows, tokens.numbers
    found = np.empty(len(ids), np.int64)
    for t in range(len(ids)):
        found[t] = table + 4 * place(0, ids[t], width)
    if len(rows):
        for t in range(len(ids)):
            entry = (tokens.first + ids[t]) & (len(rows) - 1)
            copy = copies + 4 * place(0, numbers[entry], step)
            found[t] = copy if rows[entry] == tokens.first + ids[t] else found[t]
    return found


@kernel
def meet(copies: Any) -> None:
    """Add to the weights, which others may have changed, what the copies have changed by, and
    begin again with the sums.

    copies (Copies): All but ``places`` is written.
    """
    _meet(copies.values, copies.places, copies.rows[0], copies.rows[1])
    if len(copies.squares):
        _meet(copies.squares, copies.places, copies.sums[0], copies.sums[1])


@kernel
def _meet(values: Any, places: Any, rows: Any, before: Any) -> None:
    n, width = rows.shape
    for r in range(n):
        row, now, old = values[places[r] :][:width], rows[r], before[r]
        has_changed = False
        for j in range(width):
            has_changed |= now[j] != old[j]
        if has_changed:  # A row that is not written need not leave other cores' caches.
            for j in range(width):
                row[j] += now[j] - old[j]
        for j in range(width):
            now[j] = row[j]
            old[j] = row[j]
