"""Rows on a line on which neighbours are alike in every field."""

from typing import List, Optional

import numpy as np

# How much longer than square a strip's patches are; tuned on four corpora, flat from 1 to 2.
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
    fields = np.ascontiguousarray(counts.T)
    spreads = np.abs(fields - fields.mean(axis=1, keepdims=True)).mean(axis=1)
    along, *others = np.argsort(-spreads, kind="stable").tolist()
    if not others or not spreads[others[0]]:
        return longest_first(fields[along])
    across = others[0]
    order = longest_first(fields[across])
    first, second = fields[across, order], fields[along, order]
    area = ASPECT * 2 * float(spreads[along])
    ends = _strips(first, area, rows, cells, float(second.mean()))
    strips = np.arange(len(ends)).repeat(np.diff(ends, prepend=0))
    widest = int(second.max()) + 1
    keys = strips * widest + np.where(strips & 1, second, widest - 1 - second)
    return order[_argsort(keys)]


def longest_first(lengths: np.ndarray) -> np.ndarray:
    """Numbers of the rows from the longest to the shortest; equal ones as they come.

    lengths (np.ndarray): Shape (n_rows,), int64.
    """
    return _argsort(lengths.max() - lengths)


def _argsort(keys: np.ndarray) -> np.ndarray:
    # Numbers of 16 bits are sorted by radix, several times faster.
    if keys.max() < 1 << 16:
        keys = keys.astype(np.uint16)
    return np.argsort(keys, kind="stable")


def _strips(
    first: np.ndarray, area: float, rows: Optional[int], cells: Optional[int], mean: float
) -> List[int]:
    """Where each strip ends, as positions in the rows sorted by their first length."""
    shorter_by, numbers = first[0] - first, np.arange(1, len(first) + 1)
    ends: List[int] = []
    start, n_rows, look = 0, len(first), 256
    while start < n_rows:
        longest = float(first[start])
        n_together = float(rows or 1) if cells is None else cells / max(longest + mean, 1.0)
        part = shorter_by[start : start + look]
        # Width so far times rows so far: grows along the strip.
        reached = (part - (part[0] - 1)) * numbers[: len(part)]
        length = int(reached.searchsorted(area * n_together)) + 1
        if length > len(part) and start + look < n_rows:
            look *= 4
            continue
        # Rows of equal length stay together.
        last = shorter_by[min(start + length, n_rows) - 1]
        start = int(shorter_by.searchsorted(last, side="right"))
        ends.append(start)
    return ends
