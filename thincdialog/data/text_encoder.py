"""Conversations and replies as arrays of token ids."""

import copy
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Dict, List, Literal, Optional, Sequence, Tuple, Union

import numpy as np

from ..columns import LazyColumn
from ..messages import SELF, Turn
from ..metrics import AverageMetric, Metric
from .compiled_texts import FirstSight, KnownConversations
from .found_text import (
    DistinctLabels,
    FoundConversations,
    Slices,
    by_first_sight,
    excess_of,
    without,
)
from .new_turns import lay_out_turns
from .tokenizers import Tokenizer
from .tokenizers.contract import many_encoder_of
from .turn_store import TurnStore, gather

_MAX_CACHED = 1 << 24  # token rows of 8 bytes

Encoded = Tuple[np.ndarray, np.ndarray]

_COUNTS = (
    "_n_contexts", "_n_truncated_contexts", "_n_cut_of_contexts",
    "_n_labels", "_n_truncated_labels", "_n_cut_of_labels",
)  # fmt: skip


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
        self.reset_metrics()

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
        self._n_contexts += len(found.totals)
        if excess is not None:
            self._n_truncated_contexts += int(np.count_nonzero(excess))
            self._n_cut_of_contexts += int(excess.sum())
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
    ) -> DistinctLabels:
        """Find replies, equal ones once, for ``encode_distinct``.

        limits (Optional[np.ndarray]): As for ``labels``; equal replies have their lowest.
        """
        (tokens, starts, lengths), entries = self._find_labels(texts)
        number = self._first_sight if self.is_compiled else by_first_sight
        numbers, firsts = number(entries)
        if limits is not None:
            lowest = np.full(len(firsts), limits.max())
            np.minimum.at(lowest, numbers, limits)
            limits = lowest
        return DistinctLabels(numbers, Slices(tokens, starts[firsts], lengths[firsts]), limits)

    def encode_distinct(self, distinct: DistinctLabels) -> Encoded:
        """What ``labels`` gives for the different replies."""
        return self._cut_labels(distinct.found, distinct.limits)

    def label_lengths(
        self, texts: Sequence[str], limits: Optional[np.ndarray] = None
    ) -> np.ndarray:
        """How many tokens ``labels`` gives for each reply; shape (n,), int64."""
        lengths = self._find_labels(texts)[0].lengths
        return without(lengths, excess_of(lengths, self.max_label, limits))

    def replica(self) -> "TextEncoder":
        """One that counts for itself and remembers turns together with this one; both may
        be used at once, each by a thread."""
        replica = copy.copy(self)
        replica._first_sight = FirstSight()
        replica.reset_metrics()
        return replica

    def report(self) -> Dict[str, Metric]:
        """Since the last reset: the shares of contexts and labels that were truncated,
        and the tokens cut from those, on average. All are better lower."""
        return {
            "truncated_contexts": AverageMetric(self._n_truncated_contexts, self._n_contexts),
            "truncated_labels": AverageMetric(self._n_truncated_labels, self._n_labels),
            "truncated_context_tokens": AverageMetric(
                self._n_cut_of_contexts, self._n_truncated_contexts
            ),
            "truncated_label_tokens": AverageMetric(
                self._n_cut_of_labels, self._n_truncated_labels
            ),
        }

    def reset_metrics(self) -> None:
        """Start counting afresh."""
        self._n_contexts = self._n_truncated_contexts = self._n_cut_of_contexts = 0
        self._n_labels = self._n_truncated_labels = self._n_cut_of_labels = 0

    def state(self) -> List[int]:
        """What ``report`` is made of, as JSON values."""
        return [getattr(self, name) for name in _COUNTS]

    def restore(self, state: Sequence[int]) -> None:
        """Take back what ``state`` gave."""
        for name, value in zip(_COUNTS, state):
            setattr(self, name, value)

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
        self._n_labels += len(lengths)
        if excess is not None:
            self._n_truncated_labels += int(np.count_nonzero(excess))
            self._n_cut_of_labels += int(excess.sum())
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
