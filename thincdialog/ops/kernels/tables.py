"""Rows of tables: gathered and added up.

Tables are float32, shape (n_rows, width); row numbers int32. A kernel that RETURNS False
has met a number beyond the table.
"""

from typing import Any, Tuple

import numpy as np

from .kernel import kernel

# Digits of the radix sort.
_BITS = 11
_DIGITS = 1 << _BITS


@kernel
def sum_bags(table: Any, ids: Any, lengths: Any, Y: Any) -> bool:
    """Y[b] = sum of the rows of bag b; Y begins as zeros."""
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
    """Ids of each bag sorted by segment, stably; sizes (zeros): ids of each (bag, segment)."""
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


@kernel
def _order(keys: Any) -> Tuple[Any, Any]:
    """Sort by key, equal ones in their order: the keys, and where they were."""
    n, highest = keys.shape[0], np.int64(0)
    for i in range(n):
        highest = max(highest, np.int64(keys[i]))
    here, places = keys.copy(), np.arange(n).astype(np.int32)
    there, others = np.empty_like(here), np.empty_like(places)
    counts = np.empty(_DIGITS, np.int64)
    shift = 0
    while highest >> shift > 0:
        counts[:] = 0
        for i in range(n):
            counts[(here[i] >> shift) & (_DIGITS - 1)] += 1
        place = 0
        for digit in range(_DIGITS):
            count = counts[digit]
            counts[digit] = place
            place += count
        for i in range(n):
            digit = (here[i] >> shift) & (_DIGITS - 1)
            there[counts[digit]] = here[i]
            others[counts[digit]] = places[i]
            counts[digit] += 1
        here, there, places, others = there, here, others, places
        shift += _BITS
    return here, places


@kernel
def sum_by_key(values: Any, keys: Any, sources: Any) -> Tuple[Any, Any]:
    """The distinct keys, ascending, and the sum of values[sources] for each."""
    n = keys.shape[0]
    in_order, places = _order(keys)
    n_distinct = 0
    for i in range(n):
        if i == 0 or in_order[i] != in_order[i - 1]:
            n_distinct += 1
    distinct = np.empty(n_distinct, np.int32)
    sums = np.empty((n_distinct, values.shape[1]), np.float32)
    group = -1
    for i in range(n):
        value = values[sources[places[i]]]
        if i == 0 or in_order[i] != in_order[i - 1]:
            group += 1
            distinct[group] = in_order[i]
            total = sums[group]
            for j in range(total.shape[0]):
                total[j] = value[j]
        else:
            total = sums[group]
            for j in range(total.shape[0]):
                total[j] += value[j]
    return distinct, sums
