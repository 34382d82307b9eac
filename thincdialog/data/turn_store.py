"""The tokens of turns already met, in one array, so that a batch is one gather."""

from threading import Lock
from typing import Dict, Hashable, Sequence, Tuple

import numpy as np


class TurnStore:
    """An append-only array of token rows; an entry is a slice of it.

    A token row is (id, segment), two int32 held as one int64, so that gathering
    and adding to the segment are one operation each. ``room_for`` forgets
    everything once more than ``max_rows`` rows are held: what is used is then
    encoded anew, so memory stays bounded and results stay the same.

    Threads can share a store: who looks up or adds entries holds its ``lock``, and takes
    ``tokens`` along, whose rows never change (a new array replaces it).

    max_rows (int): Token rows to keep.
    rows (Dict): Key to number of an entry.
    tokens (np.ndarray): Token rows, shape (capacity,), int64.
    entries (np.ndarray): Of each entry: first row, number of rows, number of units
        (lines, or 1); shape (3, capacity), int64.
    """

    def __init__(self, max_rows: int):
        self.max_rows = max_rows
        self.lock = Lock()
        self.forget()

    def forget(self) -> None:
        """Drop all entries."""
        self.rows: Dict[Hashable, int] = {}
        self.tokens = np.empty(4096, dtype=np.int64)
        self.entries = np.empty((3, 256), dtype=np.int64)
        self._n_tokens = 0

    def trim(self) -> None:
        """Forget all entries if they take more rows than allowed; call it between
        batches, never while numbers of entries are in use."""
        # An entry costs more than its rows, above all its text as the key.
        if self._n_tokens + 8 * len(self.rows) > self.max_rows:
            self.forget()

    def add(self, key: Hashable, ids: Sequence[np.ndarray]) -> int:
        """Add an entry.

        ids (Sequence[np.ndarray]): Token ids of each unit, the last one newest; int32.
        RETURNS (int): The number of the entry.
        """
        number = len(self.rows)
        start = self._n_tokens
        end = start + sum(map(len, ids))
        if end > len(self.tokens):
            self.tokens = _grown(self.tokens, end)
        if number == self.entries.shape[1]:
            self.entries = _grown(self.entries, number + 1)
        at = start
        for back, unit in zip(range(len(ids) - 1, -1, -1), ids):
            rows = self.tokens[at : at + len(unit)].view(np.int32).reshape(-1, 2)
            rows[:, 0] = unit
            rows[:, 1] = back
            at += len(unit)
        self.entries[:, number] = start, end - start, len(ids)
        self._n_tokens = end
        self.rows[key] = number
        return number


def gather(
    tokens: np.ndarray, starts: np.ndarray, lengths: np.ndarray, segments: np.ndarray
) -> np.ndarray:
    """Slices of a store's tokens, one after the other.

    tokens (np.ndarray): As the store had them when the slices were looked up.
    starts, lengths, segments (np.ndarray): Of each slice, shape (n_slices,), int64:
        its first row, its number of rows, and what to add to their segment.
    RETURNS (np.ndarray): Token rows, shape (n_tokens, 2), int32.
    """
    ends = lengths.cumsum()
    n_tokens = int(ends[-1]) if len(ends) else 0
    index = (starts - ends + lengths).repeat(lengths)
    index += np.arange(n_tokens)
    rows = tokens[index]
    rows += (segments * _ONE_SEGMENT).repeat(lengths)
    return rows.view(np.int32).reshape(-1, 2)


# What to add to a token row to add 1 to its segment, on machines of either byte order.
_ONE_SEGMENT = np.array([0, 1], dtype=np.int32).view(np.int64)[0]


def _grown(array: np.ndarray, least: int) -> np.ndarray:
    """A larger array that begins with the same columns."""
    shape: Tuple[int, ...] = (*array.shape[:-1], max(least, 2 * array.shape[-1]))
    larger = np.empty(shape, dtype=array.dtype)
    larger[..., : array.shape[-1]] = array
    return larger
