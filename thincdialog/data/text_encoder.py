"""Encode conversations and replies as arrays of token ids."""

import copy
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from hashlib import sha256
from itertools import chain
from threading import Lock
from typing import Any, Dict, Iterator, Literal, Optional, Sequence, Tuple, Union

import numpy as np

from ..examples.batch import CONTEXT, LABEL, NO_LIMIT, Batch
from ..examples.encoded import Encoded, Encoding, side_by_side, slice_places
from ..examples.joined_store import JoinedStore
from ..examples.memory_store import MemoryStore
from ..examples.table import by_first_sight
from ..messages import SELF, Turn
from ..ops.compiled import load_kernels
from .tokenizers import Tokenizer
from .tokenizers.contract import many_encoder_of
from .tokenizers.key import tokenizer_key
from .turn_store import (
    ONE_SEGMENT,
    Conversations,
    PackedTexts,
    TurnStore,
    lay_out_turns,
)

# Conversations, each with its current turn last: a batch, or lists of turns.
Contexts = Union[Batch, Sequence[Sequence[Turn]]]
# Replies: a batch, for the first label of each example, or texts.
Replies = Union[Batch, Sequence[str]]
# Token rows, shape (n_tokens, 2), int32, and the number of tokens of each text, shape (n,), int32.
TokenRows = Tuple[np.ndarray, np.ndarray]

# One value per thread, because one thread may prepare a batch while another one computes.
_counts: ContextVar[Optional[Counter]] = ContextVar("counts", default=None)
_MAX_CACHED = 1 << 20  # token rows of 8 bytes
_NO_LIMITS = np.zeros(0, dtype=np.int64)


def check_limits(
    history_size: int = -1, max_context: int = 0, max_label: int = 0, **_: Any
) -> None:
    """Check the limits of a ``TextEncoder``.

    RAISES (ValueError): If a limit is out of range.
    """
    if history_size == 0 or history_size < -1:
        raise ValueError(f"history_size = {history_size}, expected 1 or more, or -1 for all")
    for name, value in (("max_context", max_context), ("max_label", max_label)):
        if value < 0:
            raise ValueError(f"{name} = {value}, expected 1 or more, or 0 for no limit")


class TextEncoder:
    """Encode conversations and replies as token rows for a model.

    A row is (token id, segment). The segment is the token's distance from the end in units:
    0 is the current turn (or line), 1 the previous one. With ``delimiter``, every turn except
    the last ends with the ``<turn>`` token, which belongs to the turn that it ends. With
    ``speaker_tokens``, every turn begins with its speaker's token.

    Each turn is tokenized once and then cached. Turns of data in memory are cached as long as the
    data is; turns of other data are in a cache of limited size.

    The encoder counts (see ``counting``) the encoded "contexts", the "truncated_contexts" among
    them, and the "truncated_context_tokens" that were cut off. For labels, there are counts with
    "label" in place of "context".

    tokenizer (Tokenizer): A tokenizer that was built or loaded.
    history_size (int): Maximum number of turns of a conversation to use, including the current
        one; -1 for all.
    max_context (int): Maximum number of tokens of a context; its last tokens are kept. 0 for no
        limit.
    max_label (int): Maximum number of tokens of a reply; its first tokens are kept. 0 for no limit.
    delimiter (bool): Whether to put ``<turn>`` between turns.
    speaker_tokens (bool): Whether each turn begins with ``<partner>`` or ``<self>``.
    segments (str): Unit that segments count: "turn", or "line" (lines of all turns, except lines
        with only white space).
    max_cached (int): Number of token rows to cache for data that is not in memory; each takes
        about 16 bytes, including its share of the text.
    lay_out (Callable): Makes the token rows of turns (see ``lay_out_turns``).
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
        check_limits(history_size, max_context, max_label)
        if segments not in ("turn", "line"):
            raise ValueError(f"segments = '{segments}', expected 'turn' or 'line'")
        self.tokenizer = tokenizer
        encode_many = many_encoder_of(tokenizer)
        self.lay_out = partial(lay_out_turns, encode_many, segments, speaker_tokens)
        self.history_size = history_size
        self.max_context = max_context
        self.max_label = max_label
        self.delimiter = delimiter
        self.speaker_tokens = speaker_tokens
        self.segments = segments
        # Turns of data in memory, and turns of all other data.
        lock = Lock()
        self._kept = TurnStore(self.lay_out, speaker_tokens, None, lock)
        self._passing = TurnStore(self.lay_out, speaker_tokens, max_cached, lock)
        self._slots = np.zeros(0, dtype=np.int32)  # Work space of ``pack``.

    def contexts(self, conversations: Contexts) -> TokenRows:
        """Encode conversations. If a batch has limits, its conversations are cut to them, too."""
        return self._encode_contexts(self._look_up(conversations), _limits(conversations))

    def context_lengths(self, conversations: Contexts) -> np.ndarray:
        """Return the number of tokens of each conversation in ``contexts``; shape (n,), int64."""
        totals = Conversations(self._look_up(conversations), self.delimiter).totals
        return _shortened(totals, self.max_context, _limits(conversations))

    def labels(self, texts: Sequence[str], limits: Optional[np.ndarray] = None) -> TokenRows:
        """Encode replies, without speaker tokens and delimiters.

        limits (Optional[np.ndarray]): Maximum number of tokens of each reply, 0 or more; shape
            (n,), int64. ``max_label`` applies in addition.
        """
        found = self._look_up((), texts)
        return self._encode_labels(found, found.labels, limits)

    def label_lengths(self, texts: Replies) -> np.ndarray:
        """Return the number of tokens of each reply in ``labels``; for a batch, within its limits.
        Shape (n,), int64."""
        found = self._look_up((), texts)
        lengths = self._slices(found, found.labels)[1]
        return _shortened(lengths, self.max_label, _limits(texts, LABEL))

    def pairs(self, batch: Batch) -> Tuple[TokenRows, TokenRows, np.ndarray]:
        """Encode the conversations of a batch, and the distinct labels of its ``choices``.

        RETURNS (Tuple[TokenRows, TokenRows, np.ndarray]): The conversations; the distinct labels,
            ordered by first occurrence; and for each example of the ``choices``, which begin with
            the batch's examples, the number of its label among the distinct labels, int32.
        """
        found = self._look_up(batch, batch.choices)
        contexts = self._encode_contexts(found, _limits(batch))
        numbers, firsts = by_first_sight(found.labels)
        limits = lowest_limits(batch.choices, numbers, len(firsts))
        return contexts, self._encode_labels(found, found.labels[firsts], limits), numbers

    def pack(
        self,
        batch: Batch,
        replies: Sequence[str] = (),
        *,
        n_segments: int = 1,
        has_labels: bool = True,
    ) -> PackedTexts:
        """Encode the conversations of a batch, its labels and further replies for the kernels that
        compute a whole training step. A single kernel does all of this work.

        replies (Sequence[str]): Further replies, which follow the labels.
        n_segments (int): Number of rows per token id in the embedding table of the conversations:
            one row for each segment, the last one for all older segments.
        has_labels (bool): Whether to encode labels.
        """
        labels: Replies = batch if has_labels else ()
        found = self._look_up(batch, labels, replies)
        limits, label_limits = _limits(batch), _limits(batch, LABEL) if has_labels else None
        if label_limits is not None:
            label_limits = np.concatenate((label_limits, np.full(len(replies), NO_LIMIT)))
        if found.entries.shape[1] > len(self._slots):
            self._slots = np.zeros(found.entries.shape[1], dtype=np.int32)
        *packed, cut, label_cut = load_kernels("texts").pack_texts(
            found,
            self.speaker_tokens,
            self.delimiter,
            ONE_SEGMENT,
            n_segments,
            (self.max_context or NO_LIMIT, self.max_label or NO_LIMIT),
            (
                _NO_LIMITS if limits is None else limits,
                _NO_LIMITS if label_limits is None else label_limits,
            ),
            self._slots,
        )
        texts = PackedTexts(*packed)
        _count("context", len(found.conversations), *cut)
        _count("label", len(texts.label_starts) - 1, *label_cut)
        return texts

    @cached_property
    def key(self) -> Optional[str]:
        """Key of the encoder: encoders have equal keys only if they read the same turns of a
        conversation and make the same token rows for a text. None if the tokenizer has no key."""
        of_tokenizer = tokenizer_key(self.tokenizer)
        if of_tokenizer is None:
            return None
        own = (of_tokenizer, self.history_size, self.speaker_tokens, self.segments)
        return sha256(repr(own).encode()).hexdigest()

    @property
    def encoding(self) -> Optional[Encoding]:
        """Settings that another process needs to make the same token rows in advance; None if the
        encoder has no ``key``."""
        if self.key is None:
            return None
        return Encoding(self.key, self.lay_out, self.history_size, self.speaker_tokens)

    def replica(self) -> "TextEncoder":
        """Return an encoder that shares the cached turns with this encoder. Two threads can use
        both encoders at the same time."""
        replica = copy.copy(self)
        replica._slots = np.zeros(0, dtype=np.int32)
        return replica

    def _encode_contexts(self, found: Encoded, limits: Optional[np.ndarray]) -> TokenRows:
        read = Conversations(found, self.delimiter)
        totals = _shortened(read.totals, self.max_context, limits)
        _count_cut("context", read.totals, totals)
        return read.gather(totals), totals.astype(np.int32)

    def _encode_labels(
        self, found: Encoded, entries: np.ndarray, limits: Optional[np.ndarray]
    ) -> TokenRows:
        starts, whole = self._slices(found, entries)
        lengths = _shortened(whole, self.max_label, limits)
        _count_cut("label", whole, lengths)
        rows = found.tokens[slice_places(starts, lengths)].astype(np.int64, copy=False)
        return rows.view(np.int32).reshape(-1, 2), lengths.astype(np.int32)

    def _slices(self, found: Encoded, entries: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Return the start and the number of tokens of each reply; int64."""
        starts, lengths, _ = found.entries[:, entries]
        # Leave out the delimiter and the speaker token.
        return starts + self.speaker_tokens, lengths - (1 + self.speaker_tokens)

    def _look_up(
        self, conversations: Contexts, labels: Replies = (), texts: Sequence[str] = ()
    ) -> Encoded:
        """Look up the tokens of conversations, of labels and of further replies. Make those of new
        texts.

        RETURNS (Encoded): The conversations, and the entries of the labels and then of the further
            replies.
        """
        batch: Any = labels if isinstance(labels, Batch) else conversations
        examples: Any = batch.store if isinstance(batch, Batch) else None
        keys = () if examples is None else examples.encoder_keys
        if keys and self.key in keys:
            # The batch of the labels begins with the rows of the conversations.
            ready: Encoded = examples.encoded(self.key, batch.rows)
            numbers, entries = ready.conversations, ready.labels
            found = Encoded(*ready[:4], numbers[: len(conversations)], entries[: len(labels)])
            if texts:
                found = side_by_side([found, self._look_up((), texts)])
        else:
            is_held = examples is not None and examples.is_held
            store = self._kept if is_held else self._passing
            with store.lock:
                store.trim()
                turns, n_turns = self._turns(store, conversations)
                parts = [self._labels(store, replies) for replies in (labels, texts)]
                # Always of the same types, because each combination has its own compiled kernel.
                found = Encoded(
                    np.append(0, n_turns.cumsum()),
                    turns.astype(np.int32, copy=False),
                    store.entries,
                    store.tokens,
                    np.arange(len(n_turns)),
                    np.concatenate(parts, dtype=np.int64),
                )
        if texts:
            # A text that equals a label gets its entry, so that kernels treat both as one reply.
            known: Dict[str, int] = {}
            replies = zip(chain(_labels_of(labels), texts), found.labels.tolist())
            of_replies = [known.setdefault(text, entry) for text, entry in replies]
            found = found._replace(labels=np.array(of_replies, dtype=np.int64))
        return found

    # The caller of the following methods holds the store's lock.

    def _turns(self, store: TurnStore, conversations: Contexts) -> Tuple[np.ndarray, np.ndarray]:
        """Return the entry of each turn of some conversations in the store, and the number of turns
        of each conversation; integers."""
        if isinstance(conversations, Batch):
            table, rows = conversations.store, conversations.rows
            if isinstance(table, JoinedStore):
                parts = list(table.by_part(rows))
                found = [self._turns(store, Batch(part, own)) for part, _, own in parts]
                turns, n_turns = map(np.concatenate, zip(*found))
                order = np.concatenate([places for _, places, _ in parts]).argsort()
                starts = n_turns.cumsum() - n_turns
                n_turns = n_turns[order]
                return turns[slice_places(starts[order], n_turns)], n_turns
            table = store.table_of(table)
            if isinstance(table, MemoryStore):
                keys = table.turns(rows, self.history_size, self.speaker_tokens)
                if keys is not None:
                    return store.of_table(table, keys[0]), keys[1]
            conversations = conversations.turns(self.history_size)
        if self.history_size > 0:
            conversations = [turns[-self.history_size :] for turns in conversations]
        n_turns = np.array(list(map(len, conversations)), dtype=np.int64)
        return store.of(list(chain.from_iterable(conversations))), n_turns

    def _labels(self, store: TurnStore, texts: Replies) -> np.ndarray:
        """Return the entry of each reply in the store; shape (n,), integers."""
        if isinstance(texts, Batch):
            table: Any = texts.store
            turns = table.label_turns(texts.label_ids) if isinstance(table, MemoryStore) else None
            if turns is not None:
                return store.of_table(table, turns)
            texts = texts.first_labels()
        return store.of([(SELF, text) for text in texts])


def lowest_limits(batch: Batch, numbers: Any, n: int) -> Optional[np.ndarray]:
    """Return the maximum number of tokens of each of n replies: the lowest limit of the examples
    with this reply; shape (n,), int64. None if the batch has no limits.

    numbers (Sequence[int]): For each example, the number of its reply; may be an array.
    """
    limits = _limits(batch, LABEL)
    if limits is None:
        return None
    lowest = np.full(n, NO_LIMIT)
    np.minimum.at(lowest, numbers, limits)
    return lowest


def _count_cut(field: str, whole: np.ndarray, lengths: np.ndarray) -> None:
    n_cut = n_tokens = 0
    if lengths is not whole:
        cut = whole - lengths
        n_cut, n_tokens = int(np.count_nonzero(cut)), int(cut.sum())
    _count(field, len(whole), n_cut, n_tokens)


def _count(field: str, n: int, n_cut: int, n_tokens: int) -> None:
    count(f"{field}s", n)
    if n_cut:
        count(f"truncated_{field}s", n_cut)
        count(f"truncated_{field}_tokens", n_tokens)


def _labels_of(replies: Replies) -> Sequence[str]:
    return replies.first_labels() if isinstance(replies, Batch) else replies


def _limits(texts: Union[Contexts, Replies], field: int = CONTEXT) -> Optional[np.ndarray]:
    """Return the maximum number of tokens to read of each row of a batch, shape (n,), int64; None
    if there is no limit."""
    limits = texts.max_tokens if isinstance(texts, Batch) else None
    return None if limits is None else limits[:, field]


def _shortened(lengths: np.ndarray, most: int, limits: Optional[np.ndarray]) -> np.ndarray:
    """Cut lengths to limits. Return the same array if no length exceeds its limit."""
    if limits is None and not most:
        return lengths
    bound = np.minimum(most or NO_LIMIT, NO_LIMIT if limits is None else limits)
    return np.minimum(lengths, bound) if (lengths > bound).any() else lengths


@contextmanager
def counting(counts: Counter) -> Iterator[None]:
    """Count the texts that this thread encodes while the context is active. Outside of such a
    context, texts are not counted.

    counts (Counter): Name to number; the counts are added to it.
    """
    token = _counts.set(counts)
    try:
        yield
    finally:
        _counts.reset(token)


def count(name: str, n: int) -> None:
    """Add to a count, if this thread counts texts (see ``counting``).

    name (str): Name of the count, such as "contexts" or "truncated_contexts".
    n (int): Number to add.
    """
    counts = _counts.get()
    if counts is not None:
        counts[name] += n
