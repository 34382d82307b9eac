"""Rows of tables, copied out of the weights that workers share and put back: how kernels
begin and end that learn from a batch (see ``ops/rows_apart.py``)."""

from typing import Any

import numpy as np

from .kernel import kernel
from .vectors import AHEAD, fetch_floats, place


@kernel
def take(weights: Any, tables: Any) -> Any:
    """Give a place to each token's row and to its sum, and copy the rows that are needed often.

    weights (Weights): The room is written.
    tables (Tuple[Places, ...]): ``at`` and ``squares_at`` are written; slots stay zeros.
    RETURNS (Ints1d): Where the rows lie that are copied; int64.
    """
    width, least, n = weights.width, weights.least, 0
    if least == 0:
        for tokens in tables:
            for t in range(len(tokens.ids)):
                at = place(tokens.table, tokens.ids[t], width)
                tokens.at[t], tokens.squares_at[t] = at, at
        return np.empty(0, np.int64)
    # How often each row is needed, up to ``least``: a sum might be too large for an int32.
    for tokens in tables:
        ids, slots, uses = tokens.ids, tokens.slots, tokens.uses
        for t in range(len(ids)):
            before = slots[ids[t]]
            slots[ids[t]] = min(before + uses, least)
            n += before < least <= before + uses
    taken, n = np.empty(n, np.int64), 0
    for tokens in tables:
        n = _place_tokens(weights, tokens, taken, n)
    for tokens in tables:
        for t in range(len(tokens.ids)):
            tokens.slots[tokens.ids[t]] = 0
    _copy_rows(weights, taken)
    return taken


@kernel
def put_back(weights: Any, taken: Any) -> None:
    """Add to the weights, which others may have changed, what the copies have changed by.

    taken (Ints1d): From ``take``.
    """
    values, squares, rows, sums = weights.values, weights.squares, weights.rows, weights.sums
    n, width = len(taken), weights.width
    for r in range(n):
        fetch_floats(values[taken[min(r + AHEAD, n - 1)] :][:width])
        row = values[taken[r] :][:width]
        now = rows[r * width :][:width]
        before = rows[(n + r) * width :][:width]
        change = np.float32(0)
        for j in range(width):
            change += abs(now[j] - before[j])
        if change != 0:  # A row that is not written need not leave other cores' caches.
            for j in range(width):
                row[j] += now[j] - before[j]
        if len(squares):
            squares[taken[r]] += sums[r] - sums[n + r]


@kernel
def _place_tokens(weights: Any, tokens: Any, taken: Any, n: int) -> int:
    """Give a place to each token's row, and to its sum.

    tokens (Places): The slot of a row that is needed often becomes -1 - its number.
    taken (Ints1d): Of each number where its row lies in the weights, int64; written.
    n (int): Numbers given so far.
    RETURNS (int): Numbers given now.
    """
    of_weights, of_copies, of_squares, of_sums = weights.starts
    ids, slots, width = tokens.ids, tokens.slots, weights.width
    for t in range(len(ids)):
        slot = slots[ids[t]]
        if slot >= weights.least:
            taken[n] = place(tokens.table, ids[t], width)
            n += 1
            slot = slots[ids[t]] = -n
        if slot < 0:
            tokens.at[t] = of_copies + np.int64(-1 - slot) * width
            tokens.squares_at[t] = of_sums - 1 - slot
        else:
            at = place(tokens.table, ids[t], width)
            tokens.at[t], tokens.squares_at[t] = of_weights + at, of_squares + at
    return n


@kernel
def _copy_rows(weights: Any, taken: Any) -> None:
    """Copy rows out of the weights twice: one will change, the other will tell by how much."""
    values, squares, rows, sums = weights.values, weights.squares, weights.rows, weights.sums
    n, width = len(taken), weights.width
    for r in range(n):
        fetch_floats(values[taken[min(r + AHEAD, n - 1)] :][:width])
        row = values[taken[r] :][:width]
        now = rows[r * width :][:width]
        before = rows[(n + r) * width :][:width]
        for j in range(width):
            now[j] = row[j]
            before[j] = row[j]
        if len(squares):
            sums[r] = sums[n + r] = squares[taken[r]]
