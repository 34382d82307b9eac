"""Sums of table rows, and bags of row numbers.

Tables are float32, shape (n_rows, width); row numbers are int32. A kernel returns False if a
row number is beyond the table.
"""

from typing import Any

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
