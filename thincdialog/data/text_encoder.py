"""Conversations and replies as arrays of token ids."""

import copy
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Literal, Optional, Sequence, Tuple, Union

import numpy as np

from ..examples.batch import Batch
from ..messages import SELF, Turn
from ..ops.compiled import load_kernels
from .compiled_texts import FirstSight, FoundTexts, KnownConversations, PackedTexts
from .found_text import (
    FoundConversations,
    Slices,
    by_first_sight,
    excess_of,
    without,
)
from .new_turns import lay_out_turns
from .tokenizers import Tokenizer
from .tokenizers.contract import many_encoder_of
from .truncation import Truncation, cut_of
from .turn_store import ONE_SEGMENT, UNKNOWN, TurnStore, gather

# Conversations, each with its current turn last: those of a batch, or as lists of turns.
Contexts = Union[Batch, Sequence[Sequence[Turn]]]
# Replies: the first label of each example of a batch, or texts.
Replies = Union[Batch, Sequence[str]]

_MAX_CACHED = 1 << 24  # token rows of 8 bytes
_NO_LIMITS = np.zeros(0, dtype=np.int64)
_ANY_NUMBER = np.iinfo(np.int64).max

Encoded = Tuple[np.ndarray, np.ndarray]


class TextEncoder:
    """Turns conversations into token rows for a model, and replies likewise.

    A row is (token id, segment). The segment says how many units back a token
    stands: 0 is the current turn (or line), 1 the one before it. With ``delimiter``,
    every turn but the last ends with the ``<turn>`` token, which belongs to the
    turn it ends; with ``speaker_tokens``, every turn begins with its speaker's.

    A turn is tokenized once and then remembered: of data that is held as long as it is, else
    within a bound of memory.

    tokenizer (Tokenizer): Built already.
    history_size (int): Turns of a conversation to use, the current one counted; -1 all.
    max_context (int): Tokens of a context to keep, the last ones; 0 for no limit.
    max_label (int): Tokens of a reply to keep, the first ones; 0 for no limit.
    delimiter (bool): Whether ``<turn>`` stands between turns.
    speaker_tokens (bool): Whether ``<partner>`` or ``<self>`` opens each turn.
    segments (str): Units that segments count: "turn", or "line" (of all turns; lines
        of nothing but white space do not count).
    max_cached (int): Token rows to remember of what is not held, about 16 bytes each with
        their texts.
    truncation (Truncation): Counts of what was cut.
    is_compiled (bool): Whether batches are put together by a compiled kernel; False until
        someone who knows that there are kernels sets it.
    RAISES (ValueError): If a value is out of range.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        history_size: int = -1,
        max_context: int = 256,
        max_label: int = 64,
        delimiter: bool = True,
        speaker_tokens: bool = False,
        segments: Literal["turn", "line"] = "turn",
        max_cached: int = _MAX_CACHED,
    ):
        if history_size == 0 or history_size < -1:
            raise ValueError(f"history_size = {history_size}, expected 1 or more, or -1 for all")
        for name, value in (("max_context", max_context), ("max_label", max_label)):
            if value < 0:
                raise ValueError(f"{name} = {value}, expected 1 or more, or 0 for no limit")
        if segments not in ("turn", "line"):
            raise ValueError(f"segments = '{segments}', expected 'turn' or 'line'")
        self.tokenizer = tokenizer
        encode_many = many_encoder_of(tokenizer)
        self._lay_out = partial(lay_out_turns, encode_many, segments, speaker_tokens)
        self.history_size = history_size
        self.max_context = max_context
        self.max_label = max_label
        self.delimiter = delimiter
        self.speaker_tokens = speaker_tokens
        self.segments = segments
        self.is_compiled = False
        # Of data that is held, and of all else.
        self._kept, self._passing = TurnStore(None), TurnStore(max_cached)
        self._first_sight = FirstSight()
        self.truncation = Truncation()

    def contexts(self, conversations: Contexts, limits: Optional[np.ndarray] = None) -> Encoded:
        """Encode conversations.

        limits (Optional[np.ndarray]): Tokens to keep of each conversation, the last ones,
            0 or more; shape (n,), int64. What ``max_context`` cuts is cut all the same.
        RETURNS (Tuple[np.ndarray, np.ndarray]): Token rows, shape (n_tokens, 2), int32,
            and the number of tokens of each conversation, shape (n,), int32.
        """
        found = self._find_contexts(conversations)
        excess = excess_of(found.totals, self.max_context, limits)
        self.truncation.count_contexts(len(found.totals), cut_of(excess))
        totals = without(found.totals, excess)
        return found.gather(totals), totals.astype(np.int32)

    def context_lengths(
        self, conversations: Contexts, limits: Optional[np.ndarray] = None
    ) -> np.ndarray:
        """How many tokens ``contexts`` gives for each conversation; shape (n,), int64."""
        totals = self._find_contexts(conversations).totals
        return without(totals, excess_of(totals, self.max_context, limits))

    def labels(self, texts: Replies, limits: Optional[np.ndarray] = None) -> Encoded:
        """Encode replies. No speaker and no delimiter is added.

        limits (Optional[np.ndarray]): Tokens to keep of each reply, the first ones,
            0 or more; shape (n,), int64. What ``max_label`` cuts is cut all the same.
        RETURNS (Tuple[np.ndarray, np.ndarray]): As from ``contexts``.
        """
        return self._cut_labels(self._find_labels(texts)[0], limits)

    def distinct_labels(
        self, texts: Replies, limits: Optional[np.ndarray] = None
    ) -> Tuple[np.ndarray, Encoded]:
        """Encode replies, equal ones once, in the order of first sight.

        limits (Optional[np.ndarray]): As for ``labels``; equal replies have their lowest.
        RETURNS (Tuple[np.ndarray, Encoded]): Of each text the number of its reply, shape
            (n_texts,), int32; and what ``labels`` gives for the different replies.
        """
        (tokens, starts, lengths), entries = self._find_labels(texts)
        number = self._first_sight if self.is_compiled else by_first_sight
        numbers, firsts = number(entries)
        if limits is not None:
            lowest = np.full(len(firsts), _ANY_NUMBER)
            np.minimum.at(lowest, numbers, limits)
            limits = lowest
        found = Slices(tokens, starts[firsts], lengths[firsts])
        return numbers, self._cut_labels(found, limits)

    def label_lengths(self, texts: Replies, limits: Optional[np.ndarray] = None) -> np.ndarray:
        """How many tokens ``labels`` gives for each reply; shape (n,), int64."""
        lengths = self._find_labels(texts)[0].lengths
        return without(lengths, excess_of(lengths, self.max_label, limits))

    def find(
        self, batch: Batch, replies: Sequence[str] = (), has_labels: bool = True
    ) -> FoundTexts:
        """Find the conversations of a batch, its labels and further replies, for ``pack``.

        replies (Sequence[str]): They come behind the labels.
        has_labels (bool): Whether labels are wanted.
        """
        store = self._store_of(batch)
        with store.lock:
            store.trim()
            known = self._conversation_numbers(store, batch)
            labels = self._label_numbers(store, batch if has_labels else ())
            others = self._label_numbers(store, replies)
            return FoundTexts(store.now(), known, np.concatenate((labels, others)))

    def pack(
        self,
        found: FoundTexts,
        n_segments: int = 1,
        limits: Tuple[Optional[np.ndarray], Optional[np.ndarray]] = (None, None),
    ) -> PackedTexts:
        """What ``contexts`` and ``distinct_labels`` give, in the form that kernels take
        which are a whole training step; all in one kernel itself.

        found (FoundTexts): From ``find``.
        n_segments (int): Rows that the conversations' table has for each token id: one for
            each segment, the last for all older ones.
        limits (Tuple[Optional[np.ndarray], Optional[np.ndarray]]): Of the conversations and
            of the labels, as for ``contexts`` and ``labels``.
        """
        store, conversations, labels = found
        of_contexts, of_labels = (_NO_LIMITS if each is None else each for each in limits)
        slots = self._first_sight.slots(store.entries.shape[1])
        *packed, cut, label_cut = load_kernels("texts").pack_texts(
            store,
            conversations,
            labels,
            self.speaker_tokens,
            self.delimiter,
            ONE_SEGMENT,
            n_segments,
            (self.max_context or _ANY_NUMBER, self.max_label or _ANY_NUMBER),
            (of_contexts, of_labels),
            slots,
        )
        texts = PackedTexts(*packed)
        self.truncation.count_contexts(len(conversations), cut)
        self.truncation.count_labels(len(texts.label_starts) - 1, label_cut)
        return texts

    def replica(self) -> "TextEncoder":
        """One that counts for itself and remembers turns together with this one; both may
        be used at once, each by a thread."""
        replica = copy.copy(self)
        replica._first_sight = FirstSight()
        replica.truncation = Truncation()
        return replica

    def _store_of(self, what: Union[Contexts, Replies]) -> TurnStore:
        is_held = isinstance(what, Batch) and what.store.is_held
        return self._kept if is_held else self._passing

    def _find_contexts(
        self, conversations: Contexts
    ) -> Union[FoundConversations, KnownConversations]:
        store = self._store_of(conversations)
        with store.lock:
            store.trim()
            known = self._conversation_numbers(store, conversations)
            if self.is_compiled:
                return KnownConversations(store.now(), known, self.delimiter)
            numbers, n_turns = store.turns_of(known)
            tokens, entries = store.tokens, store.entries[:, numbers]
        return FoundConversations(tokens, entries, n_turns, self.delimiter)

    def _find_labels(self, texts: Replies) -> Tuple[Slices, np.ndarray]:
        """Where replies stand in their store, before truncation, and their entries."""
        store = self._store_of(texts)
        with store.lock:
            store.trim()
            numbers = self._label_numbers(store, texts)
            tokens, (starts, lengths, _) = store.tokens, store.entries[:, numbers]
        lengths -= 1  # the delimiter
        if self.speaker_tokens:
            starts += 1
            lengths -= 1
        return Slices(tokens, starts, lengths), numbers

    def _cut_labels(self, found: Slices, limits: Optional[np.ndarray]) -> Encoded:
        tokens, starts, lengths = found
        excess = excess_of(lengths, self.max_label, limits)
        self.truncation.count_labels(len(lengths), cut_of(excess))
        lengths = without(lengths, excess)
        rows = gather(tokens, starts, lengths, np.zeros_like(lengths), self.is_compiled)
        return rows, lengths.astype(np.int32)

    # What follows is called with the store's lock held.

    def _conversation_numbers(self, store: TurnStore, conversations: Contexts) -> np.ndarray:
        """The store's number of each conversation; shape (n,), int64."""
        if not isinstance(conversations, Batch):
            return self._add_conversations(store, conversations)
        known, rows = store.known_of(conversations.store).contexts, conversations.rows
        numbers: np.ndarray = known[rows]
        new = np.flatnonzero(numbers == UNKNOWN)
        if len(new):
            some = conversations if len(new) == len(rows) else conversations.take(new)
            added = self._add_conversations(store, some.turns(self.history_size))
            known[rows[new]] = numbers[new] = added
        return numbers

    def _add_conversations(
        self, store: TurnStore, conversations: Sequence[Sequence[Turn]]
    ) -> np.ndarray:
        if self.history_size > 0:
            kept = slice(-self.history_size, None)
            conversations = [turns[kept] for turns in conversations]
        n_turns = np.array(list(map(len, conversations)), dtype=np.int64)
        turns = self._entries(store, list(chain.from_iterable(conversations)))
        return store.add_conversations(turns, n_turns)

    def _label_numbers(self, store: TurnStore, texts: Replies) -> np.ndarray:
        """The store's entry of each reply; shape (n,), int64."""
        if not isinstance(texts, Batch):
            return self._entries(store, [(SELF, text) for text in texts])
        known, ids = store.known_of(texts.store).labels, texts.label_ids()
        numbers: np.ndarray = known[ids]
        if (numbers == UNKNOWN).any():
            new = np.unique(ids[numbers == UNKNOWN])
            label_texts = texts.store.label_texts
            known[new] = self._entries(store, [(SELF, label_texts[id]) for id in new.tolist()])
            numbers = known[ids]
        return numbers

    def _entries(self, store: TurnStore, turns: Sequence[Turn]) -> np.ndarray:
        """The store's entry of each turn; shape (n_turns,), int64."""
        known = store.rows
        keys = list(map(tuple, turns) if self.speaker_tokens else map(itemgetter(1), turns))
        try:
            # Mostly all are known: then it takes two thirds of the time of a loop.
            numbers = itemgetter(*keys, *keys[:1])(known)[: len(keys)] if keys else ()
        except KeyError:
            new = {key: turn for key, turn in zip(keys, turns) if key not in known}
            store.add(list(new), *self._lay_out(list(new.values())))
            numbers = tuple(known[key] for key in keys)
        return np.array(numbers, dtype=np.int64)
