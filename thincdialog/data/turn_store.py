"""The tokens of turns: made when a turn first occurs, then held in one array, so that a batch
needs only one gather."""

from itertools import chain
from threading import Lock
from typing import (
    Callable,
    Dict,
    Hashable,
    List,
    MutableMapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)
from weakref import WeakKeyDictionary

import numpy as np

from ..examples.memory_store import MemoryStore
from ..examples.slices import slice_places
from ..examples.store import Store
from ..messages import SELF, Turn
from .special_tokens import PARTNER_SPEAKS, SELF_SPEAKS, TURN

EncodeMany = Callable[[Sequence[str]], Tuple[np.ndarray, np.ndarray]]

UNKNOWN = -1
# What to add to a token row to add 1 to its segment, on machines of either byte order.
ONE_SEGMENT = np.array([0, 1], dtype=np.int32).view(np.int64)[0]


class StoredTurns(NamedTuple):
    """Hold the state of a store at some time. Rows and entries never change: the store replaces
    its arrays by larger ones.

    bounds (np.ndarray): Start of each conversation's turns, and the end of the last; int64.
    turns (np.ndarray): Entries of the turns of all conversations, int32.
    entries, tokens (np.ndarray): As in ``TurnStore``; or as in ``examples.Encoded``.
    """

    bounds: np.ndarray
    turns: np.ndarray
    entries: np.ndarray
    tokens: np.ndarray


class TurnStore:
    """Hold token rows in an append-only array; an entry is a slice of it.

    A token row is (id, segment), two int32 held as one int64, so that gathering
    and adding to the segment are one operation each. ``trim`` forgets
    everything once the store holds more than ``max_rows`` rows. Turns are then encoded
    again when they are used, so memory stays bounded and results stay the same.

    Threads can share a store: a thread holds the ``lock`` while it looks up or adds entries,
    and takes a snapshot (``now``) to read from after that.

    max_rows (Optional[int]): Token rows to keep; None for all.
    lock (Optional[Lock]): Shared by all stores that one tokenizer fills, so that only one thread
        at a time calls the tokenizer; None for a separate lock.
    rows (Dict): The entry of each turn that is looked up by its text.
    tokens (np.ndarray): Token rows, shape (capacity,), int64.
    entries (np.ndarray): For each entry: first row, number of rows, number of units
        (lines, or 1); shape (3, capacity), int64.
    """

    def __init__(self, max_rows: Optional[int], lock: Optional[Lock] = None):
        self.max_rows = max_rows
        self.lock = lock or Lock()
        self.forget()

    def __getstate__(self) -> Dict[str, Optional[int]]:
        # A copy (pickle, copy.deepcopy) starts empty, with its own lock.
        return {"max_rows": self.max_rows}

    def __setstate__(self, state: Dict[str, Optional[int]]) -> None:
        TurnStore.__init__(self, state["max_rows"])

    def forget(self) -> None:
        """Drop all entries."""
        self.rows: Dict[Hashable, int] = {}
        self.tokens = np.empty(4096, dtype=np.int64)
        self.entries = np.empty((3, 256), dtype=np.int64)
        self._n_tokens = self._n_entries = 0
        # The entries of all conversations' turns in sequence, and the start of each conversation.
        self._turns = np.empty(1024, dtype=np.int32)
        self._bounds = np.zeros(256, dtype=np.int64)
        self._n_conversations = 0
        # See ``known_of``; dropped when the examples are garbage-collected.
        self._known: MutableMapping[Store, Tuple[np.ndarray, np.ndarray]] = WeakKeyDictionary()
        self._known_turns: MutableMapping[Store, np.ndarray] = WeakKeyDictionary()

    def known_of(self, examples: Store) -> Tuple[np.ndarray, np.ndarray]:
        """Return the number of each example's conversation in a store of examples, shape
        (n_examples,), and the entry of each of its ``label_texts``, shape (n_labels,); int64.
        New ones are ``UNKNOWN``; the caller replaces these when it adds them."""
        known = self._known.get(examples)
        if known is None:
            sizes = examples.n_examples, len(examples.label_texts)
            contexts, labels = (np.full(size, UNKNOWN) for size in sizes)
            known = self._known[examples] = contexts, labels
        return known

    def known_turns(self, table: MemoryStore) -> np.ndarray:
        """Return the entry of each turn of a table (see ``Table.turns``), or ``UNKNOWN``; int32."""
        known = self._known_turns.get(table)
        if known is None:
            known = np.full(2 * table.n_strings, UNKNOWN, dtype=np.int32)
            self._known_turns[table] = known
        return known

    def trim(self) -> None:
        """Forget all entries if they take more rows than allowed; call it between
        batches, never while numbers of entries are in use."""
        if self.max_rows is None:
            return
        # An entry takes more memory than its rows, mainly for its text as the key.
        n_rows = self._n_tokens + 8 * len(self.rows)
        # In units of 8 bytes.
        n_rows += 2 * self._n_conversations + int(self._bounds[self._n_conversations]) // 2
        if n_rows > self.max_rows:
            self.forget()

    def add(self, tokens: np.ndarray, lengths: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Add entries.

        tokens (np.ndarray): Token rows of all entries, shape (n_tokens,), int64.
        lengths (np.ndarray): Token rows of each entry, int64.
        units (np.ndarray): Units of each entry, int64.
        RETURNS (np.ndarray): Their numbers, int64.
        """
        number, start = self._n_entries, self._n_tokens
        last, end = number + len(lengths), start + len(tokens)
        self.tokens = _with_room(self.tokens, end)
        self.entries = _with_room(self.entries, last)
        self.tokens[start:end] = tokens
        self.entries[:, number:last] = start + lengths.cumsum() - lengths, lengths, units
        self._n_tokens, self._n_entries = end, last
        return np.arange(number, last)

    def add_conversations(self, turns: np.ndarray, n_turns: np.ndarray) -> np.ndarray:
        """Store which turns conversations consist of.

        turns (np.ndarray): Entries of all turns, shape (n_turns,), int64.
        n_turns (np.ndarray): Number of turns of each conversation, shape (n,), int64.
        RETURNS (np.ndarray): Numbers of the conversations, shape (n,), int64.
        """
        first, n = self._n_conversations, len(n_turns)
        start = self._bounds[first]
        self._bounds = _with_room(self._bounds, first + n + 1)
        self._bounds[first + 1 : first + n + 1] = start + n_turns.cumsum()
        end = int(self._bounds[first + n])
        self._turns = _with_room(self._turns, end)
        self._turns[start:end] = turns
        self._n_conversations = first + n
        return np.arange(first, first + n)

    def now(self) -> StoredTurns:
        """Return a snapshot that can be read without the lock."""
        return StoredTurns(self._bounds, self._turns, self.entries, self.tokens)


class Conversations:
    """Read conversations of a store by number. (``CompiledConversations`` does the same.)

    store (StoredTurns): Snapshot of the store.
    numbers (np.ndarray): Numbers of the conversations, shape (n,), int64.
    delimiter (bool): Whether all turns except the last end with a delimiter token.
    totals (np.ndarray): Tokens of each conversation before truncation, shape (n,), int64.
    """

    def __init__(self, store: StoredTurns, numbers: np.ndarray, delimiter: bool):
        starts = store.bounds[numbers]
        n_turns = self._n_turns = store.bounds[numbers + 1] - starts
        self._tokens = store.tokens
        entries = store.entries[:, store.turns[slice_places(starts, n_turns)]]
        self._starts, self._lengths, self._n_units = entries
        # Number of turns before each conversation, and of all turns.
        self._bounds = np.append(0, n_turns.cumsum())
        if delimiter:
            self._lengths[self._bounds[1:][n_turns > 0] - 1] -= 1
        else:
            self._lengths -= 1  # the store keeps a delimiter after every turn
        # Number of tokens before each turn, and of all tokens.
        self._upto = np.append(0, self._lengths.cumsum())
        self.totals = np.diff(self._upto[self._bounds])

    def gather(self, totals: np.ndarray) -> np.ndarray:
        """Return the last token rows of each conversation; shape (n_tokens, 2), int32.

        totals (np.ndarray): Number of rows of each conversation, shape (n,), int64.
        """
        starts, lengths, n_turns = self._starts, self._lengths, self._n_turns
        # Number of units after each turn, up to the end of its conversation.
        units = np.append(0, self._n_units.cumsum())
        segments = units[self._bounds[1:]].repeat(n_turns) - units[1:]
        if totals is not self.totals:
            before = self._upto[:-1] - self._upto[self._bounds[:-1]].repeat(n_turns)
            cut = np.clip((self.totals - totals).repeat(n_turns) - before, 0, lengths)
            starts = starts + cut
            lengths = lengths - cut
        rows = self._tokens[slice_places(starts, lengths)].astype(np.int64, copy=False)
        rows += (segments * ONE_SEGMENT).repeat(lengths)
        return rows.view(np.int32).reshape(-1, 2)


def lay_out_turns(
    encode_many: EncodeMany, segments: str, speaker_tokens: bool, turns: Sequence[Turn]
) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make the token rows (see ``TurnStore``) of turns, each with ``<turn>`` at its end.

    encode_many (Callable): Method of the tokenizer.
    segments (str): Unit of segments: "turn", or "line" (lines of only white space do not count).
    speaker_tokens (bool): Whether each turn begins with its speaker's token.
    turns (Sequence[Turn]): One or more.
    RETURNS (Tuple[np.ndarray, np.ndarray, np.ndarray]): Rows of all, shape (n_tokens,),
        and for each turn the number of its rows and of its units; int64.
    """
    texts = [text for _, text in turns]
    n_units = np.ones(len(turns), dtype=np.int64)
    if segments == "line":
        of_turns = [_lines(text) for text in texts]
        texts = list(chain.from_iterable(of_turns))
        n_units = np.array(list(map(len, of_turns)), dtype=np.int64)
    ids, lengths = encode_many(texts)
    last = n_units.cumsum() - 1  # Unit of each turn.
    first = last - n_units + 1
    n_before = np.zeros(len(texts), dtype=np.int64)  # Rows before the first token.
    n_before[first] = speaker_tokens
    totals = lengths + n_before
    totals[last] += 1
    ends = totals.cumsum()
    starts = ends - totals
    rows = np.empty((int(ends[-1]), 2), dtype=np.int32)
    rows[slice_places(starts + n_before, lengths), 0] = ids
    rows[ends[last] - 1, 0] = TURN
    if speaker_tokens:
        rows[starts[first], 0] = [
            SELF_SPEAKS if role == SELF else PARTNER_SPEAKS for role, _ in turns
        ]
    n_behind = last.repeat(n_units) - np.arange(len(texts))
    rows[:, 1] = n_behind.repeat(totals)
    return rows.view(np.int64).ravel(), np.add.reduceat(totals, first), n_units


def _lines(text: str) -> List[str]:
    return [line for line in text.split("\n") if line.strip()] or [""]


def _with_room(array: np.ndarray, least: int) -> np.ndarray:
    """Return an array of at least ``least`` columns that starts with the same columns."""
    if least <= array.shape[-1]:
        return array
    shape: Tuple[int, ...] = (*array.shape[:-1], max(least, 2 * array.shape[-1]))
    larger = np.empty(shape, dtype=array.dtype)
    larger[..., : array.shape[-1]] = array
    return larger
