"""Conversations and replies as arrays of token ids."""

import copy
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Literal, Optional, Sequence, Tuple, Union

import numpy as np

from ..columns import LazyColumn
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
from .turn_store import ONE_SEGMENT, TurnStore, gather

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

    A turn is tokenized once and then remembered, within a bound of memory.

    tokenizer (Tokenizer): Built already.
    history_size (int): Turns of a conversation to use, the current one counted; -1 all.
    max_context (int): Tokens of a context to keep, the last ones; 0 for no limit.
    max_label (int): Tokens of a reply to keep, the first ones; 0 for no limit.
    delimiter (bool): Whether ``<turn>`` stands between turns.
    speaker_tokens (bool): Whether ``<partner>`` or ``<self>`` opens each turn.
    segments (str): Units that segments count: "turn", or "line" (of all turns; lines
        of nothing but white space do not count).
    max_cached (int): Token rows to remember, about 16 bytes each with their texts.
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
        self._store = TurnStore(max_cached)
        self._first_sight = FirstSight()
        self.truncation = Truncation()

    def contexts(
        self, conversations: Sequence[Sequence[Turn]], limits: Optional[np.ndarray] = None
    ) -> Encoded:
        """Encode conversations, each with its current turn last.

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
        self, conversations: Sequence[Sequence[Turn]], limits: Optional[np.ndarray] = None
    ) -> np.ndarray:
        """How many tokens ``contexts`` gives for each conversation; shape (n,), int64."""
        totals = self._find_contexts(conversations).totals
        return without(totals, excess_of(totals, self.max_context, limits))

    def labels(self, texts: Sequence[str], limits: Optional[np.ndarray] = None) -> Encoded:
        """Encode replies. No speaker and no delimiter is added.

        limits (Optional[np.ndarray]): Tokens to keep of each reply, the first ones,
            0 or more; shape (n,), int64. What ``max_label`` cuts is cut all the same.
        RETURNS (Tuple[np.ndarray, np.ndarray]): As from ``contexts``.
        """
        return self._cut_labels(self._find_labels(texts)[0], limits)

    def distinct_labels(
        self, texts: Sequence[str], limits: Optional[np.ndarray] = None
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

    def label_lengths(
        self, texts: Sequence[str], limits: Optional[np.ndarray] = None
    ) -> np.ndarray:
        """How many tokens ``labels`` gives for each reply; shape (n,), int64."""
        lengths = self._find_labels(texts)[0].lengths
        return without(lengths, excess_of(lengths, self.max_label, limits))

    def find(
        self, conversations: Sequence[Sequence[Turn]], labels: Sequence[str] = ()
    ) -> FoundTexts:
        """Find conversations and replies, for ``pack``."""
        store = self._store
        with store.lock:
            store.trim()
            entries = store.known_labels.of(labels, self._label_numbers)
            if isinstance(conversations, LazyColumn):
                known = store.known_contexts.of(conversations, self._add_conversations)
                return FoundTexts(store.now(), known, entries)
            turns, n_turns = self._turns(conversations)
            bounds = np.concatenate(([0], n_turns.cumsum()))
            found = store.now()._replace(bounds=bounds, turns=turns.astype(np.int32))
        return FoundTexts(found, np.arange(len(n_turns)), entries)

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

    def _find_contexts(
        self, conversations: Sequence[Sequence[Turn]]
    ) -> Union[FoundConversations, KnownConversations]:
        store = self._store
        with store.lock:
            store.trim()
            if isinstance(conversations, LazyColumn):
                known = store.known_contexts.of(conversations, self._add_conversations)
                if self.is_compiled:
                    return KnownConversations(store.now(), known, self.delimiter)
                numbers, n_turns = store.turns_of(known)
            else:
                numbers, n_turns = self._turns(conversations)
            tokens, entries = store.tokens, store.entries[:, numbers]
        return FoundConversations(tokens, entries, n_turns, self.delimiter, self.is_compiled)

    def _find_labels(self, texts: Sequence[str]) -> Tuple[Slices, np.ndarray]:
        """Where replies stand in the store, before truncation, and their entries."""
        store = self._store
        with store.lock:
            store.trim()
            numbers = store.known_labels.of(texts, self._label_numbers)
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

    def _turns(self, conversations: Sequence[Sequence[Turn]]) -> Tuple[np.ndarray, np.ndarray]:
        """The store's entries of all turns, and the number of turns of each conversation."""
        if self.history_size > 0:
            kept = slice(-self.history_size, None)
            conversations = [turns[kept] for turns in conversations]
        n_turns = np.array(list(map(len, conversations)), dtype=np.int64)
        return self._numbers(list(chain.from_iterable(conversations))), n_turns

    def _add_conversations(self, conversations: Sequence[Sequence[Turn]]) -> np.ndarray:
        return self._store.add_conversations(*self._turns(conversations))

    def _label_numbers(self, texts: Sequence[str]) -> np.ndarray:
        return self._numbers([(SELF, text) for text in texts])

    def _numbers(self, turns: Sequence[Turn]) -> np.ndarray:
        """The store's entry of each turn; shape (n_turns,), int64."""
        known = self._store.rows
        keys = list(map(tuple, turns) if self.speaker_tokens else map(itemgetter(1), turns))
        try:
            # Mostly all are known: then it takes two thirds of the time of a loop.
            numbers = itemgetter(*keys, *keys[:1])(known)[: len(keys)] if keys else ()
        except KeyError:
            new = {key: turn for key, turn in zip(keys, turns) if key not in known}
            self._store.add(list(new), *self._lay_out(list(new.values())))
            numbers = tuple(known[key] for key in keys)
        return np.array(numbers, dtype=np.int64)
