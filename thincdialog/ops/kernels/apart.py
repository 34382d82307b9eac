"""Rows of tables, copied out of the weights that workers share and put back."""

from typing import Any

import numpy as np

from .kernel import kernel
from .vectors import place


@kernel
def count_rows(ids: Any, uses: int, least: int, slots: Any) -> int:
    """Count how often rows are needed.

    ids (Ints1d): Rows of the table, int32.
    uses (int): What each counts.
    least (int): What often is.
    slots (Ints1d): Of each row of the table its count, int32; added to, up to ``least``: a
        sum might be too large for it.
    RETURNS (int): Rows that are needed often, and were not before.
    """
    n = 0
    for t in range(len(ids)):
        before = slots[ids[t]]
        slots[ids[t]] = min(before + uses, least)
        n += before < least <= before + uses
    return n


@kernel
def place_tokens(
    ids: Any, table: int, width: int, least: int, slots: Any, taken: Any, n: int,
    shifts: Any, places: Any, squares_at: Any
) -> int:  # fmt: skip
    """Give a place to each token's row, and to its square.

    ids (Ints1d): Rows of the table, int32.
    table (int): Where it begins in the weights.
    width (int): Floats in a row.
    least (int): What often is.
    slots (Ints1d): Of each row of the table its count, int32; that of a row that is needed
        often becomes -1 - its number.
    taken (Ints1d): Of each number where its row lies in the weights, int64; written.
    n (int): Numbers given so far.
    shifts (Tuple[int, int, int, int]): What to add to a place in the weights, and where the
        copies begin; the same for the squares.
    places (Ints1d): Of each token where its row begins, int64; written.
    squares_at (Ints1d): Of each token where its square stands, int64; written.
    RETURNS (int): Numbers given now.
    """
    of_weights, of_copies, of_squares, of_sums = shifts
    for t in range(len(ids)):
        slot = slots[ids[t]]
        if slot >= least:
            taken[n] = place(table, ids[t], width)
            n += 1
            slot = slots[ids[t]] = -n
        if slot < 0:
            places[t] = of_copies + np.int64(-1 - slot) * width
            squares_at[t] = of_sums - 1 - slot
        else:
            at = place(table, ids[t], width)
            places[t], squares_at[t] = of_weights + at, of_squares + at
    return n


@kernel
def forget_rows(ids: Any, slots: Any) -> None:
    """Set the slots of some tokens to 0 again."""
    for t in range(len(ids)):
        slots[ids[t]] = 0


@kernel
def take_rows(values: Any, squares: Any, places: Any, width: int, rows: Any, sums: Any) -> None:
    """Copy rows out of the weights, twice.

    values (Floats1d): All weights, float32.
    squares (Floats1d): As long, of which the first place of each row is copied; or empty.
    places (Ints1d): Where the rows begin, shape (n,), int64.
    width (int): Floats in a row.
    rows (Floats1d): Room for the copies, at least 2 * n * width: all rows, and behind them
        what they were.
    sums (Floats1d): Room for the squares, at least 2 * n, likewise.
    """
    n = len(places)
    for r in range(n):
        row = values[places[r] :][:width]
        now = rows[r * width :][:width]
        before = rows[(n + r) * width :][:width]
        for j in range(width):
            now[j] = row[j]
            before[j] = row[j]
        if len(squares):
            sums[r] = sums[n + r] = squares[places[r]]


@kernel
def put_rows(values: Any, squares: Any, places: Any, width: int, rows: Any, sums: Any) -> None:
    """Add to the weights what the copies have changed by; others may have changed the
    weights since."""
    n = len(places)
    for r in range(n):
        row = values[places[r] :][:width]
        now = rows[r * width :][:width]
        before = rows[(n + r) * width :][:width]
        change = np.float32(0)
        for j in range(width):
            change += abs(now[j] - before[j])
        if change != 0:  # A row that is not written need not leave other cores' caches.
            for j in range(width):
                row[j] += now[j] - before[j]
        if len(squares):
            squares[places[r]] += sums[r] - sums[n + r]
