"""Sums of table rows, and bags of row numbers.

Tables are float32, shape (n_rows, width); row numbers are int32. A kernel returns False if a
row number is beyond the table.
"""

from typing import Any

import numpy as np

from .kernel import kernel


@kernel
def sum_bags(table: Any, ids: Any, lengths: Any, Y: Any) -> bool:
    """Compute Y[b] = sum of the rows of bag b; Y must be zeros."""
    start = 0
    for b in range(lengths.shape[0]):
        y = Y[b]
        for t in range(start, start + lengths[b]):
            index = ids[t]
            if index < 0 or index >= table.shape[0]:
                return False
            row = table[index]
            for j in range(y.shape[0]):
                y[j] += row[j]
        start += lengths[b]
    return True


@kernel
def split_bags(tokens: Any, lengths: Any, n_segments: int, ids: Any, sizes: Any) -> None:
    """Sort the ids of each bag by segment, stably, and count the ids of each (bag, segment) in
    ``sizes``, which must be zeros."""
    start = 0
    places = np.empty(n_segments, np.int64)
    for b in range(lengths.shape[0]):
        stop, first = start + lengths[b], b * n_segments
        for t in range(start, stop):
            sizes[first + min(tokens[t, 1], n_segments - 1)] += 1
        place = start
        for segment in range(n_segments):
            places[segment] = place
            place += sizes[first + segment]
        for t in range(start, stop):
            segment = min(tokens[t, 1], n_segments - 1)
            ids[places[segment]] = tokens[t, 0]
            places[segment] += 1
        start = stop
