"""What a TextEncoder does for a batch of known examples, by compiled kernels."""

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
        """Tokens of each before truncation, shape (n,), int64."""
        bounds, turns, entries, _ = self.store
        totals = np.empty(len(self.numbers), dtype=np.int64)
        load_kernels("texts").measure_conversations(
            self.numbers, bounds, turns, entries, self.delimiter, totals
        )
        return totals

    def gather(self, totals: np.ndarray) -> np.ndarray:
        """The last token rows of each; shape (n_tokens, 2), int32."""
        rows = np.empty(int(totals.sum()), dtype=np.int64)
        kept = (self.delimiter, ONE_SEGMENT, totals, rows)
        load_kernels("texts").gather_conversations(self.numbers, *self.store, *kept)
        return rows.view(np.int32).reshape(-1, 2)


class PackedTexts(NamedTuple):
    """Conversations and different replies as rows of tables of embeddings.

    contexts (np.ndarray): Rows of all conversations' tokens, int32.
    context_starts (np.ndarray): Where each begins, and the end of the last; int64.
    labels, label_starts (np.ndarray): The same of the replies, in the order of first sight.
    numbers (np.ndarray): Of each label that was asked for the number of its reply, int32.
    """

    contexts: np.ndarray
    context_starts: np.ndarray
    labels: np.ndarray
    label_starts: np.ndarray
    numbers: np.ndarray


class FirstSight:
    """``by_first_sight`` for keys that are small whole numbers. Not for two threads at once."""

    def __init__(self) -> None:
        self._slots = np.zeros(0, dtype=np.int32)

    def slots(self, n: int) -> np.ndarray:
        """Zeros for keys below n, at least; whoever writes to them makes them zeros again."""
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
