"""Slices of one array, one after the other."""

from typing import Any

from .kernel import kernel


@kernel
def gather_slices(values: Any, starts: Any, lengths: Any, added: Any, gathered: Any) -> None:
    """Copy slices of an array, and add a number to each.

    values (Ints1d): int64.
    starts, lengths, added (Ints1d): Of each slice where it begins, its length, and what to
        add to all its values; shape (n_slices,), int64.
    gathered (Ints1d): As long as all slices together; written.
    """
    place = 0
    for k in range(len(starts)):
        start, more = starts[k], added[k]
        for t in range(start, start + lengths[k]):
            gathered[place] = values[t] + more
            place += 1
