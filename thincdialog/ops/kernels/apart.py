"""Private copies of rows that a worker changes instead of the shared weights: which rows have a
copy, how a token finds its row, and how copies are merged (see ``ops/rows_apart.py``)."""

from typing import Any

import numpy as np

from .kernel import kernel
from .vectors import place


@kernel
def choose(tables: Any, width: int, least: int, rows: Any, numbers: Any, places: Any) -> int:
    """Number the rows that a batch uses often. If two rows share an entry, the first one gets it.

    tables (Tuple[Tokens, ...]): The batch's tokens.
    width (int): Floats in a row.
    least (int): Number of uses from which on a row gets a number, 127 at most.
    rows, numbers (Ints1d): For each entry, its row of the weights, negative if it has none, and
        the number of that row; int32, the length a power of 2; written.
    places (Ints1d): Index in the weights of each row with a number; int64, written.
    RETURNS (int): Number of rows with a number.
    """
    n_rows, n = 0, 0
    for tokens in tables:
        for row in tokens.ids:
            n_rows = max(n_rows, tokens.table // width + row + 1)
    uses = np.zeros(n_rows, np.int8)
    for tokens in tables:
        own = uses[tokens.table // width :]
        for row in tokens.ids:  # Counts stop at ``least``, so that they do not overflow.
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
    """Return the address of each token's row: that of the row's copy if it has one, else of the
    row.

    tokens (FoundTokens): The tokens.
    width (int): Floats in a row.
    RETURNS (Ints1d): An address for each token, int64.
    """
    return _addresses(tokens, tokens.weights, width, tokens.copies, width)


@kernel
def sums_of(tokens: Any, width: int) -> Any:
    """Return the address of Adagrad's sum for each token's row, or of the sum's copy."""
    return _addresses(tokens, tokens.squares, width, tokens.sums, 1)


@kernel
def _addresses(tokens: Any, table: int, width: int, copies: int, step: int) -> Any:
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
    """Merge copies and weights: add the changes of the copies to the weights, which other workers
    may have changed, and update the copies to the sums.

    copies (Copies): Every array except ``places`` is written.
    """
    _merge(copies.values, copies.places, copies.rows[0], copies.rows[1])
    if len(copies.squares):
        _merge(copies.squares, copies.places, copies.sums[0], copies.sums[1])


@kernel
def _merge(values: Any, places: Any, rows: Any, before: Any) -> None:
    """Merge the copies of some rows (see ``meet``)."""
    n, width = rows.shape
    for r in range(n):
        row, now, old = values[places[r] :][:width], rows[r], before[r]
        has_changed = False
        for j in range(width):
            has_changed |= now[j] != old[j]
        if has_changed:  # An unchanged row is not written, so it stays in other cores' caches.
            for j in range(width):
                row[j] += now[j] - old[j]
        for j in range(width):
            now[j] = row[j]
            old[j] = row[j]
