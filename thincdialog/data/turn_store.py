"""A cache of the tokens of turns. A turn is tokenized when it first occurs; all tokens are in one
array, so that a batch needs only one gather."""

from itertools import chain
from operator import itemgetter
from threading import Lock
from typing import (
    Any,
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

from ..examples.encoded import Encoded, LayOut, slice_places
from ..examples.memory_store import MemoryStore
from ..examples.store import Store
from ..messages import SELF, Message, Turn
from .special_tokens import PARTNER_SPEAKS, SELF_SPEAKS, TURN

EncodeMany = Callable[[Sequence[str]], Tuple[np.ndarray, np.ndarray]]

UNKNOWN = -1
# Adding this number to a token row adds 1 to its segment, on machines of either byte order.
ONE_SEGMENT = np.array([0, 1], dtype=np.int32).view(np.int64)[0]


class TurnStore:
    """Hold token rows in an append-only array; an entry is a slice of this array.

    A token row is (id, segment): two int32 values held as one int64, so that gathering and adding
    to the segment are one operation each. ``trim`` drops all entries if the store holds more than
    ``max_rows`` rows. Turns are then encoded again when they are used, so memory is limited and
    results do not change.

    Threads can share a store: a thread holds the ``lock`` while it looks up entries, because this
    adds those of new turns. It can read them later without the lock: they never change in the
    arrays that it saw, because the store replaces its arrays with larger ones.

    lay_out (LayOut): Makes the token rows of turns.
    has_speakers (bool): Whether the token rows of a turn depend on its speaker.
    max_rows (Optional[int]): Maximum number of token rows to keep; None for no limit.
    lock (Optional[Lock]): Lock that all stores of a tokenizer share, so that only one thread at a
        time calls the tokenizer; None for a new lock.
    rows (Dict): The entry of each turn that is looked up by its text.
    tokens (np.ndarray): Token rows, shape (capacity,), int64.
    entries (np.ndarray): For each entry its first row, the number of its rows, and the number of
        its units (lines, or 1); shape (3, capacity), int64.
    """

    def __init__(
        self,
        lay_out: LayOut,
        has_speakers: bool,
        max_rows: Optional[int],
        lock: Optional[Lock] = None,
    ):
        self.lay_out, self.has_speakers, self.max_rows = lay_out, has_speakers, max_rows
        self.lock = lock or Lock()
        self.forget()

    def __reduce__(self) -> Tuple[Any, ...]:
        # A copy (pickle, copy.deepcopy) starts empty, with its own lock.
        return TurnStore, (self.lay_out, self.has_speakers, self.max_rows)

    def forget(self) -> None:
        """Drop all entries."""
        self.rows: Dict[Hashable, int] = {}
        self.tokens = np.empty(4096, dtype=np.int64)
        self.entries = np.empty((3, 256), dtype=np.int64)
        self._n_tokens = self._n_entries = 0
        # Weak keys, so that the values are dropped with the examples.
        self._tables: MutableMapping[Store, MemoryStore] = WeakKeyDictionary()
        self._known_turns: MutableMapping[Store, np.ndarray] = WeakKeyDictionary()

    def table_of(self, examples: Store) -> Store:
        """Return the turns of examples as a table in memory if they are held for the whole run, so
        that custom code reads each text once; otherwise, return the examples."""
        if isinstance(examples, MemoryStore) or not examples.is_held:
            return examples
        table = self._tables.get(examples)
        if table is None:
            table, names = MemoryStore(), ("text", "context")
            rows = zip(*map(examples.all_cells, names))
            table.append_all([Message(zip(names, cells))] for cells in rows)
            # Only now, because custom code may have raised an error.
            self._tables[examples] = table
        return table

    def trim(self) -> None:
        """Drop all entries if they take more rows than ``max_rows``. Call it between batches, never
        while numbers of entries are in use."""
        if self.max_rows is None:
            return
        # An entry takes more memory than its rows, mainly for its text, which is its key: as
        # much as 8 further rows.
        if self._n_tokens + 8 * len(self.rows) > self.max_rows:
            self.forget()

    def of(self, turns: Sequence[Turn]) -> np.ndarray:
        """Return the entry of each turn; shape (n_turns,), int64. Add those of new turns."""
        known = self.rows
        keys = list(map(tuple, turns) if self.has_speakers else map(itemgetter(1), turns))
        try:
            # Usually all turns are known. Then itemgetter takes two thirds of the time of a loop.
            numbers = itemgetter(*keys, *keys[:1])(known)[: len(keys)] if keys else ()
        except KeyError:
            new = {key: turn for key, turn in zip(keys, turns) if key not in known}
            known.update(zip(new, self._add(list(new.values())).tolist()))
            numbers = tuple(known[key] for key in keys)
        return np.array(numbers, dtype=np.int64)

    def of_table(self, table: MemoryStore, turns: np.ndarray) -> np.ndarray:
        """Return the entry of each turn of a table (see ``Table.turns``); shape (n_turns,), int32.
        Add those of new turns."""
        known = self._known_turns.get(table)
        if known is None:
            # The last two are for rows without a text.
            known = np.full(2 * table.n_strings + 2, UNKNOWN, dtype=np.int32)
            self._known_turns[table] = known
        entries: np.ndarray = known[turns]
        if (entries == UNKNOWN).any():
            new = np.unique(turns[entries == UNKNOWN])
            texts = table.as_turns(new)
            # If the table is held in memory, a text is looked up by its number alone, because the
            # string would take more memory than its tokens.
            known[new] = self._add(texts) if table.is_held else self.of(texts)
            entries = known[turns]
        return entries

    def _add(self, turns: Sequence[Turn]) -> np.ndarray:
        """Tokenize turns, and return the numbers of their new entries; shape (n_turns,), int64."""
        tokens, lengths, units = self.lay_out(turns)
        number, start = self._n_entries, self._n_tokens
        last, end = number + len(lengths), start + len(tokens)
        self.tokens = _enlarged(self.tokens, end)
        self.entries = _enlarged(self.entries, last)
        self.tokens[start:end] = tokens
        self.entries[:, number:last] = start + lengths.cumsum() - lengths, lengths, units
        self._n_tokens, self._n_entries = end, last
        return np.arange(number, last)


class Conversations:
    """Read conversations.

    found (Encoded): The conversations.
    delimiter (bool): Whether all turns except the last end with a delimiter token.
    totals (np.ndarray): Number of tokens of each conversation before truncation, shape (n,), int64.
    """

    def __init__(self, found: Encoded, delimiter: bool):
        starts = found.bounds[found.conversations]
        n_turns = self._n_turns = found.bounds[found.conversations + 1] - starts
        self._tokens = found.tokens
        entries = found.entries[:, found.turns[slice_places(starts, n_turns)]]
        self._starts, self._lengths, self._n_units = entries
        # Number of turns before each conversation, then the number of all turns.
        self._bounds = np.append(0, n_turns.cumsum())
        if delimiter:
            self._lengths[self._bounds[1:][n_turns > 0] - 1] -= 1
        else:
            self._lengths -= 1  # Every turn in the store ends with a delimiter.
        # Number of tokens before each turn, then the number of all tokens.
        self._upto = np.append(0, self._lengths.cumsum())
        self.totals = np.diff(self._upto[self._bounds])

    def gather(self, totals: np.ndarray) -> np.ndarray:
        """Return the last token rows of each conversation; shape (n_tokens, 2), int32.

        totals (np.ndarray): Number of rows of each conversation, shape (n,), int64.
        """
        starts, lengths, n_turns = self._starts, self._lengths, self._n_turns
        # Number of units between each turn and the end of its conversation.
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


def lay_out_turns(
    encode_many: EncodeMany, segments: str, speaker_tokens: bool, turns: Sequence[Turn]
) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make the token rows (see ``TurnStore``) of turns, each with ``<turn>`` at its end.

    encode_many (Callable): Method of the tokenizer that encodes several texts.
    segments (str): Unit that segments count: "turn", or "line" (except lines with only white
        space).
    speaker_tokens (bool): Whether each turn begins with its speaker's token.
    turns (Sequence[Turn]): The turns, one or more.
    RETURNS (Tuple[np.ndarray, np.ndarray, np.ndarray]): Token rows of all turns, shape
        (n_tokens,); and for each turn the number of its rows and the number of its units, shape
        (n_turns,); int64.
    """
    texts = [text for _, text in turns]
    n_units = np.ones(len(turns), dtype=np.int64)
    if segments == "line":
        of_turns = [_lines(text) for text in texts]
        texts = list(chain.from_iterable(of_turns))
        n_units = np.array(list(map(len, of_turns)), dtype=np.int64)
    ids, lengths = encode_many(texts)
    last = n_units.cumsum() - 1  # Number of the last unit of each turn.
    first = last - n_units + 1
    n_before = np.zeros(len(texts), dtype=np.int64)  # Speaker tokens at the start of each unit.
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
    n_after = last.repeat(n_units) - np.arange(len(texts))
    rows[:, 1] = n_after.repeat(totals)
    return rows.view(np.int64).ravel(), np.add.reduceat(totals, first), n_units


def _lines(text: str) -> List[str]:
    return [line for line in text.split("\n") if line.strip()] or [""]


def _enlarged(array: np.ndarray, least: int) -> np.ndarray:
    """Return an array with the same values and room for at least ``least`` columns."""
    if least <= array.shape[-1]:
        return array
    shape: Tuple[int, ...] = (*array.shape[:-1], max(least, 2 * array.shape[-1]))
    larger = np.empty(shape, dtype=array.dtype)
    larger[..., : array.shape[-1]] = array
    return larger
