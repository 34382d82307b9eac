"""Assemble batches of known turns for a ``TextEncoder``, with compiled kernels."""

from functools import cached_property
from typing import NamedTuple, Tuple

import numpy as np

from ..ops.compiled import load_kernels
from .turn_store import ONE_SEGMENT, StoredTurns


class CompiledConversations:
    """Read conversations of a store by number, as ``Conversations`` does, with compiled kernels."""

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

    contexts (np.ndarray): Rows of the tokens of all conversations, int32.
    context_starts (np.ndarray): Start of each conversation in ``contexts``, and the end of the
        last one; int64.
    labels (np.ndarray): Rows of the tokens of the distinct replies, ordered by first occurrence;
        int32.
    label_starts (np.ndarray): Start of each reply in ``labels``, and the end of the last one;
        int64.
    numbers (np.ndarray): For each label and further reply, the number of its distinct reply; int32.
    """

    contexts: np.ndarray
    context_starts: np.ndarray
    labels: np.ndarray
    label_starts: np.ndarray
    numbers: np.ndarray


class FirstSight:
    """Number keys in the order in which they first occur, as ``by_first_sight`` does. Keys must be
    small integers. Not thread-safe."""

    def __init__(self) -> None:
        self._slots = np.zeros(0, dtype=np.int32)

    def slots(self, n: int) -> np.ndarray:
        """Return an array of zeros, one for each key below n or more. A caller that writes to the
        array must reset it to zeros."""
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
