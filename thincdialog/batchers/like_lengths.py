"""Order rows so that neighbours have similar lengths in every field."""

from typing import List, Optional

import numpy as np

# Ratio of the two sides of the area that a batch covers in a strip. Tuned on four corpora; results
# are almost the same for 1 to 2.
ASPECT = 1.25


def order_by_length(
    counts: np.ndarray, rows: Optional[int] = None, cells: Optional[int] = None
) -> np.ndarray:
    """Order rows, longest first, so that any run of neighbours has similar lengths.

    A single field is sorted. With two fields, the field that varies less is cut into strips. Each
    strip is sorted by the other field, descending and ascending in turn, so that the line snakes
    through the plane of both lengths. A strip is so wide that the rows of one batch spread about
    as far across the strip as along it. Its width follows the density of rows, because short rows
    are dense and long rows are sparse. With more fields, only the two that vary most are used.

    counts (np.ndarray): Number of words of each field of each row, shape (n_rows, n_fields), int64.
    rows (Optional[int]): Number of rows of a batch, if that is its limit.
    cells (Optional[int]): Number of cells of a batch, if that is its limit.
    RETURNS (np.ndarray): Numbers of the rows in this order, shape (n_rows,), int64.
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
    return order[np.argsort(keys, kind="stable")]


def longest_first(lengths: np.ndarray) -> np.ndarray:
    """Return the numbers of the rows from the longest to the shortest. Rows of equal length keep
    their order.

    lengths (np.ndarray): Length of each row, shape (n_rows,), int64.
    """
    return np.argsort(lengths.max() - lengths, kind="stable")


def _strips(
    first: np.ndarray, area: float, rows: Optional[int], cells: Optional[int], mean: float
) -> List[int]:
    """Return the end of each strip, as positions in the rows sorted by their first length.

    first (np.ndarray): Length of the field that is cut into strips, descending; int64.
    area (float): Width of a strip, times the number of its rows, for batches of one row.
    mean (float): Mean length of the other field.
    """
    shorter_by, numbers = first[0] - first, np.arange(1, len(first) + 1)
    ends: List[int] = []
    start, n_rows = 0, len(first)
    while start < n_rows:
        longest = float(first[start])
        n_together = float(rows or 1) if cells is None else cells / max(longest + mean, 1.0)
        part = shorter_by[start:]
        # Width so far times number of rows so far, which increases along the strip.
        reached = (part - (part[0] - 1)) * numbers[: len(part)]
        length = int(reached.searchsorted(area * n_together)) + 1
        # Rows of equal length stay together.
        last = shorter_by[min(start + length, n_rows) - 1]
        start = int(shorter_by.searchsorted(last, side="right"))
        ends.append(start)
    return ends
