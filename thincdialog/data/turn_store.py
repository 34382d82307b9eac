"""The tokens of turns already met, in one array, so that a batch is one gather."""

from threading import Lock
from typing import Dict, Hashable, MutableMapping, NamedTuple, Optional, Sequence, Tuple
from weakref import WeakKeyDictionary

import numpy as np

from ..examples.store import Store
from ..ops.compiled import load_kernels
from .slices import slice_places


class StoredTurns(NamedTuple):
    """What a store held at a time; rows and entries never change, new arrays replace these.

    bounds (np.ndarray): Where the turns of each conversation begin, and end; int64.
    turns (np.ndarray): Entries of all their turns, int32.
    entries, tokens (np.ndarray): As in ``TurnStore``.
    """

    bounds: np.ndarray
    turns: np.ndarray
    entries: np.ndarray
    tokens: np.ndarray


UNKNOWN = -1


class KnownRows:
    """What was encoded of a store of examples.

    contexts (np.ndarray): Of each row the number of its conversation, shape (n_rows,).
    labels (np.ndarray): Of each of the store's ``label_texts`` its entry.
    """

    def __init__(self, store: Store):
        self.contexts = np.full(store.n_examples, UNKNOWN, dtype=np.int64)
        self.labels = np.full(len(store.label_texts), UNKNOWN, dtype=np.int64)


class TurnStore:
    """An append-only array of token rows; an entry is a slice of it.

    A token row is (id, segment), two int32 held as one int64, so that gathering
    and adding to the segment are one operation each. ``trim`` forgets
    everything once more than ``max_rows`` rows are held: what is used is then
    encoded anew, so memory stays bounded and results stay the same.

    Threads can share a store: who looks up or adds entries holds its ``lock``, and takes
    ``tokens`` along, whose rows never change (a new array replaces it).

    max_rows (Optional[int]): Token rows to keep; None for all.
    rows (Dict): Key to number of an entry.
    tokens (np.ndarray): Token rows, shape (capacity,), int64.
    entries (np.ndarray): Of each entry: first row, number of rows, number of units
        (lines, or 1); shape (3, capacity), int64.
    """

    def __init__(self, max_rows: Optional[int]):
        self.max_rows = max_rows
        self.lock = Lock()
        self.forget()

    def forget(self) -> None:
        """Drop all entries."""
        self.rows: Dict[Hashable, int] = {}
        self.tokens = np.empty(4096, dtype=np.int64)
        self.entries = np.empty((3, 256), dtype=np.int64)
        self._n_tokens = 0
        # Of conversations: their turns' entries one after the other, and where each begins.
        self._turns = np.empty(1024, dtype=np.int32)
        self._bounds = np.zeros(256, dtype=np.int64)
        self._n_conversations = 0
        # Forgotten with the examples, too.
        self._known: MutableMapping[Store, KnownRows] = WeakKeyDictionary()

    def known_of(self, store: Store) -> KnownRows:
        """What was encoded of a store of examples; who encodes more notes it there."""
        known = self._known.get(store)
        if known is None:
            known = self._known[store] = KnownRows(store)
        return known

    def trim(self) -> None:
        """Forget all entries if they take more rows than allowed; call it between
        batches, never while numbers of entries are in use."""
        if self.max_rows is None:
            return
        # An entry costs more than its rows, above all its text as the key.
        n_rows = self._n_tokens + 8 * len(self.rows)
        # In units of 8 bytes.
        n_rows += 2 * self._n_conversations + int(self._bounds[self._n_conversations]) // 2
        if n_rows > self.max_rows:
            self.forget()

    def add(
        self, keys: Sequence[Hashable], tokens: np.ndarray, lengths: np.ndarray, units: np.ndarray
    ) -> None:
        """Add entries, numbered in their order.

        keys (Sequence[Hashable]): None of them is in ``rows``, and none comes twice.
        tokens (np.ndarray): Token rows of all entries, shape (n_tokens,), int64.
        lengths (np.ndarray): Token rows of each entry, int64.
        units (np.ndarray): Units of each entry, int64.
        """
        number, start = len(self.rows), self._n_tokens
        last, end = number + len(keys), start + len(tokens)
        if end > len(self.tokens):
            self.tokens = _grown(self.tokens, end)
        if last > self.entries.shape[1]:
            self.entries = _grown(self.entries, last)
        self.tokens[start:end] = tokens
        self.entries[:, number:last] = start + lengths.cumsum() - lengths, lengths, units
        self._n_tokens = end
        self.rows.update(zip(keys, range(number, last)))

    def add_conversations(self, turns: np.ndarray, n_turns: np.ndarray) -> np.ndarray:
        """Remember which turns conversations consist of.

        turns (np.ndarray): Entries of all turns, shape (n_turns,), int64.
        n_turns (np.ndarray): Of each conversation, shape (n,), int64.
        RETURNS (np.ndarray): Numbers of the conversations, shape (n,), int64.
        """
        first, n = self._n_conversations, len(n_turns)
        start = self._bounds[first]
        ends = start + n_turns.cumsum()
        if first + n >= len(self._bounds):
            self._bounds = _grown(self._bounds, first + n + 1)
        self._bounds[first + 1 : first + n + 1] = ends
        end = int(self._bounds[first + n])
        if end > len(self._turns):
            self._turns = _grown(self._turns, end)
        self._turns[start:end] = turns
        self._n_conversations = first + n
        return np.arange(first, first + n)

    def now(self) -> StoredTurns:
        """All that is held, to be read when the lock is no longer held."""
        return StoredTurns(self._bounds, self._turns, self.entries, self.tokens)

    def turns_of(self, conversations: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """What ``add_conversations`` was told.

        conversations (np.ndarray): Their numbers, shape (n,), int64.
        RETURNS (Tuple[np.ndarray, np.ndarray]): Entries of all turns, int32, and the
            number of turns of each conversation, int64.
        """
        starts = self._bounds[conversations]
        n_turns = self._bounds[conversations + 1] - starts
        return self._turns[slice_places(starts, n_turns)], n_turns


def gather(
    tokens: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    segments: np.ndarray,
    is_compiled: bool = False,
) -> np.ndarray:
    """Slices of a store's tokens, one after the other.

    tokens (np.ndarray): As the store had them when the slices were looked up.
    starts, lengths, segments (np.ndarray): Of each slice, shape (n_slices,), int64:
        its first row, its number of rows, and what to add to their segment.
    is_compiled (bool): Whether a compiled kernel does it.
    RETURNS (np.ndarray): Token rows, shape (n_tokens, 2), int32.
    """
    added = segments * ONE_SEGMENT
    if is_compiled:
        rows = np.empty(int(lengths.sum()), dtype=np.int64)
        load_kernels("texts").gather_slices(tokens, starts, lengths, added, rows)
    else:
        rows = tokens[slice_places(starts, lengths)]
        rows += added.repeat(lengths)
    return rows.view(np.int32).reshape(-1, 2)


# What to add to a token row to add 1 to its segment, on machines of either byte order.
ONE_SEGMENT = np.array([0, 1], dtype=np.int32).view(np.int64)[0]


def _grown(array: np.ndarray, least: int) -> np.ndarray:
    """A larger array that begins with the same columns."""
    shape: Tuple[int, ...] = (*array.shape[:-1], max(least, 2 * array.shape[-1]))
    larger = np.empty(shape, dtype=array.dtype)
    larger[..., : array.shape[-1]] = array
    return larger
