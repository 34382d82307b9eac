"""Rows on a line on which neighbours are alike in every field."""

from typing import List, Optional

import numpy as np

# How much longer than square the patches of a strip are; tuned on four corpora, flat
# between 1 and 2.
ASPECT = 1.25


def order_by_length(
    counts: np.ndarray, rows: Optional[int] = None, cells: Optional[int] = None
) -> np.ndarray:
    """Line up rows so that any run of neighbours has like lengths, longest first.

    One field is sorted. Of two, the one that varies less is cut into strips, which are
    sorted by the other one, down and up in turn: the line snakes through the plane of
    both lengths. A strip is so wide that the rows of one batch spread as far across it
    as along it; since rows are dense where texts are short and sparse where they are
    long, its width follows their density. Of more fields, the two that vary most count.

    counts (np.ndarray): Shape (n_rows, n_fields), int64.
    rows (Optional[int]): Rows of a batch.
    cells (Optional[int]): Cells of a batch, where that is its limit.
    RETURNS (np.ndarray): Numbers of the rows, shape (n_rows,), int64.
    """
    spreads = np.abs(counts - counts.mean(axis=0)).mean(axis=0)
    # The two that vary most; the first may be the only one.
    along, across = [*np.argsort(-spreads, kind="stable").tolist(), -1][:2]
    if across < 0 or not spreads[across]:
        return np.argsort(-counts[:, along], kind="stable")
    order = np.argsort(-counts[:, across], kind="stable")
    first, second = counts[order, across], counts[order, along]
    area = ASPECT * 2 * float(spreads[along])
    mean = float(second.mean())
    ends = _strips(first, area, rows, cells, mean)
    strips = np.arange(len(ends)).repeat(np.diff(ends, prepend=0))
    widest = int(second.max()) + 1
    keys = strips * widest + np.where(strips & 1, second, widest - 1 - second)
    # Numbers of 16 bits are sorted by radix, several times faster.
    if widest * len(ends) <= 1 << 16:
        keys = keys.astype(np.uint16)
    return order[np.argsort(keys, kind="stable")]


def _strips(
    first: np.ndarray, area: float, rows: Optional[int], cells: Optional[int], mean: float
) -> List[int]:
    """Where each strip ends, as positions in the rows sorted by their first length."""
    ends: List[int] = []
    start, n_rows, look = 0, len(first), 256
    while start < n_rows:
        longest = int(first[start])
        n_together = rows if cells is None else cells / max(longest + mean, 1.0)
        part = first[start : start + look]
        # Width so far times rows so far: grows along the strip.
        reached = (longest - part + 1) * np.arange(1, len(part) + 1)
        length = int(np.searchsorted(reached, area * (n_together or 1))) + 1
        if length > len(part) and start + look < n_rows:
            look *= 4
            continue
        # Rows of equal length stay together.
        last = int(first[min(start + length, n_rows) - 1])
        start = n_rows - int(np.searchsorted(first[::-1], last, side="left"))
        ends.append(start)
    return ends
