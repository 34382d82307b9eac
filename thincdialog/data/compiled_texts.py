"""Encoding of batches of known examples for a TextEncoder, by compiled kernels."""

from functools import cached_property
from typing import NamedTuple, Tuple

import numpy as np

from ..ops.compiled import load_kernels
from .turn_store import ONE_SEGMENT, StoredTurns


class CompiledConversations:
    """See ``Conversations``."""

    def __init__(self, store: StoredTurns, numbers: np.ndarray, delimiter: bool):
        self.store, self.numbers, self.delimiter = store, numbers, delimiter

    @cached_property
    def totals(self) -> np.ndarray:
        """Number of tokens of each conversation before truncation; shape (n,), int64."""
        bounds, turns, entries, _ = self.store
        totals = np.empty(len(self.numbers), dtype=np.int64)
        load_kernels("texts").measure_conversations(
            self.numbers, bounds, turns, entries, self.delimiter, totals
        )
        return totals

    def gather(self, totals: np.ndarray) -> np.ndarray:
        """Return the last token rows of each conversation; shape (n_tokens, 2), int32.

        totals (np.ndarray): Number of rows of each conversation, shape (n,), int64.
        """
        rows = np.empty(int(totals.sum()), dtype=np.int64)
        kept = (self.delimiter, ONE_SEGMENT, totals, rows)
        load_kernels("texts").gather_conversations(self.numbers, *self.store, *kept)
        return rows.view(np.int32).reshape(-1, 2)


class PackedTexts(NamedTuple):
    """Hold conversations and distinct replies as rows of embedding tables.

    contexts (np.ndarray): Rows of all conversations' tokens, int32.
    context_starts (np.ndarray): Start of each conversation, and the end of the last one; int64.
    labels, label_starts (np.ndarray): The same for the replies, ordered by first occurrence.
    numbers (np.ndarray): For each requested label, the number of its reply; int32.
    """

    contexts: np.ndarray
    context_starts: np.ndarray
    labels: np.ndarray
    label_starts: np.ndarray
    numbers: np.ndarray


class FirstSight:
    """Number keys as ``by_first_sight`` does, if they are small integers. Not thread-safe."""

    def __init__(self) -> None:
        self._slots = np.zeros(0, dtype=np.int32)

    def slots(self, n: int) -> np.ndarray:
        """Return zeros for at least the keys below n; a caller that writes to them resets them."""
        if n > len(self._slots):
            self._slots = np.zeros(n, dtype=np.int32)
        return self._slots

    def __call__(self, keys: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        highest = int(keys.max(initial=-1))
        slots = self._slots if highest < len(self._slots) else self.slots(2 * highest + 1)
        numbers = np.empty(len(keys), dtype=np.int32)
        firsts = np.empty(len(keys), dtype=np.int64)
        n = load_kernels("texts").number_by_first_sight(keys, slots, numbers, firsts)
        return numbers, firsts[:n]
