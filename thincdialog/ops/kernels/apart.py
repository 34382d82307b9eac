"""Rows of tables, copied out of the weights that workers share and put back."""

from typing import Any

import numpy as np

from .kernel import kernel
from .vectors import place


@kernel
def number_rows(
    ids: Any, table: int, width: int, slots: Any, places: Any, n: int, numbers: Any
) -> int:
    """Number the distinct rows of some tokens.

    ids (Ints1d): Rows of the table, int32.
    table (int): Where it begins in the weights.
    width (int): Floats in a row.
    slots (Ints1d): Of each row of the table its number + 1, 0 if it has none yet, int32;
        written.
    places (Ints1d): Of each number where its row lies in the weights, int64; written.
    n (int): Numbers given so far.
    numbers (Ints1d): Of each token the number of its row, int32; written.
    RETURNS (int): Numbers given now.
    """
    for t in range(len(ids)):
        slot = slots[ids[t]]
        if slot == 0:
            places[n] = place(table, ids[t], width)
            n += 1
            slot = slots[ids[t]] = n
        numbers[t] = slot - 1
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
    rows (Floats1d): Room for the copies, at least 2 * n * width.
    sums (Floats1d): Room for the squares, as large: each stands at the first place of its
        row, and behind all rows what they were.
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
            sums[r * width] = squares[places[r]]
            sums[n * width + r] = squares[places[r]]


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
            squares[places[r]] += sums[r * width] - sums[n * width + r]
