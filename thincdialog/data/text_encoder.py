"""Conversations and replies as arrays of token ids."""

import copy
from itertools import chain
from operator import itemgetter
from typing import Any, Dict, List, Literal, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..messages import SELF, Turn
from ..metrics import AverageMetric, Metric
from .special_tokens import PARTNER_SPEAKS, SELF_SPEAKS, TURN
from .tokenizers import Tokenizer
from .tokenizers.contract import encoder_of
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
        self._encode = encoder_of(tokenizer)
        self.history_size = history_size
        self.max_context = max_context
        self.max_label = max_label
        self.delimiter = delimiter
        self.speaker_tokens = speaker_tokens
        self.segments = segments
        self._store = TurnStore(max_cached)
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
        excess = _excess(found.totals, self.max_context, limits)
        starts, lengths = found.starts, found.lengths
        # Units behind each turn, to the end of its conversation.
        units = found.n_units.cumsum()
        segments = _at(units, found.last).repeat(found.n_turns) - units
        self._n_contexts += len(found.totals)
        if excess is not None:
            first = found.last - found.n_turns
            before = found.ends - lengths - _at(found.ends, first).repeat(found.n_turns)
            cut = np.clip(excess.repeat(found.n_turns) - before, 0, lengths)
            starts = starts + cut
            lengths = lengths - cut
            self._n_truncated_contexts += int(np.count_nonzero(excess))
            self._n_cut_of_contexts += int(excess.sum())
        totals = _without(found.totals, excess)
        rows = gather(found.tokens, starts, lengths, segments)
        return rows, totals.astype(np.int32)

    def context_lengths(
        self, conversations: Sequence[Sequence[Turn]], limits: Optional[np.ndarray] = None
    ) -> np.ndarray:
        """How many tokens ``contexts`` gives for each conversation; shape (n,), int64."""
        totals = self._find_contexts(conversations).totals
        return _without(totals, _excess(totals, self.max_context, limits))

    def labels(self, texts: Sequence[str], limits: Optional[np.ndarray] = None) -> Encoded:
        """Encode replies. No speaker and no delimiter is added.

        limits (Optional[np.ndarray]): Tokens to keep of each reply, the first ones,
            0 or more; shape (n,), int64. What ``max_label`` cuts is cut all the same.
        RETURNS (Tuple[np.ndarray, np.ndarray]): As from ``contexts``.
        """
        tokens, starts, lengths = self._find_labels(texts)
        excess = _excess(lengths, self.max_label, limits)
        self._n_labels += len(lengths)
        if excess is not None:
            self._n_truncated_labels += int(np.count_nonzero(excess))
            self._n_cut_of_labels += int(excess.sum())
        lengths = _without(lengths, excess)
        rows = gather(tokens, starts, lengths, np.zeros_like(lengths))
        return rows, lengths.astype(np.int32)

    def label_lengths(
        self, texts: Sequence[str], limits: Optional[np.ndarray] = None
    ) -> np.ndarray:
        """How many tokens ``labels`` gives for each reply; shape (n,), int64."""
        _, _, lengths = self._find_labels(texts)
        return _without(lengths, _excess(lengths, self.max_label, limits))

    def replica(self) -> "TextEncoder":
        """One that counts for itself and remembers turns together with this one; both may
        be used at once, each by a thread."""
        replica = copy.copy(self)
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

    def _find_contexts(self, conversations: Sequence[Sequence[Turn]]) -> "_Contexts":
        if self.history_size > 0:
            kept = slice(-self.history_size, None)
            conversations = [turns[kept] for turns in conversations]
        n_turns = np.array(list(map(len, conversations)), dtype=np.int64)
        tokens, entries = self._look_up(list(chain.from_iterable(conversations)))
        starts, lengths, n_units = entries
        last = n_turns.cumsum()
        if self.delimiter:
            lengths[last[n_turns > 0] - 1] -= 1
        else:
            lengths -= 1  # the store keeps a delimiter behind every turn
        ends = lengths.cumsum()
        totals = _at(ends, last) - _at(ends, last - n_turns)
        return _Contexts(tokens, n_turns, last, starts, lengths, n_units, ends, totals)

    def _find_labels(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The store's tokens, and of each reply its first row and number of tokens, before
        truncation."""
        tokens, (starts, lengths, _) = self._look_up([(SELF, text) for text in texts])
        lengths -= 1  # the delimiter
        if self.speaker_tokens:
            starts += 1
            lengths -= 1
        return tokens, starts, lengths

    def _look_up(self, turns: Sequence[Turn]) -> Tuple[np.ndarray, np.ndarray]:
        """The store's tokens, and the entries of some turns; shape (3, n_turns), int64."""
        store = self._store
        with store.lock:
            numbers = self._numbers(turns)
            return store.tokens, store.entries[:, numbers]

    def _numbers(self, turns: Sequence[Turn]) -> np.ndarray:
        """The store's entry of each turn; shape (n_turns,), int64."""
        self._store.trim()
        known = self._store.rows
        keys = list(map(tuple, turns) if self.speaker_tokens else map(itemgetter(1), turns))
        try:
            # Mostly all are known: then it takes two thirds of the time of a loop.
            numbers = itemgetter(*keys, *keys[:1])(known)[: len(keys)] if keys else ()
        except KeyError:
            numbers = tuple(map(self._add, turns))
        return np.array(numbers, dtype=np.int64)

    def _add(self, turn: Turn) -> int:
        role, text = turn
        key: Any = (role, text) if self.speaker_tokens else text
        number = self._store.rows.get(key)
        if number is not None:
            return number
        lines = [text]
        if self.segments == "line":
            lines = [line for line in text.split("\n") if line.strip()] or [""]
        units: List[np.ndarray] = [self._encode(line) for line in lines]
        if self.speaker_tokens:
            speaker = SELF_SPEAKS if role == SELF else PARTNER_SPEAKS
            units[0] = np.concatenate(([speaker], units[0]))
        units[-1] = np.concatenate((units[-1], [TURN]))
        return self._store.add(key, units)


class _Contexts(NamedTuple):
    """Conversations in the store, before truncation; all int64."""

    tokens: np.ndarray  # of the store
    n_turns: np.ndarray  # of each conversation
    last: np.ndarray  # one past the last turn of each conversation
    starts: np.ndarray  # first row of each turn
    lengths: np.ndarray  # tokens of each turn
    n_units: np.ndarray  # of each turn
    ends: np.ndarray  # running sum of lengths
    totals: np.ndarray  # tokens of each conversation


def _excess(
    totals: np.ndarray, max_tokens: int, limits: Optional[np.ndarray]
) -> Optional[np.ndarray]:
    """How many tokens of each row are too many; None where nothing is to be cut."""
    most: Any = limits
    if max_tokens:
        most = max_tokens if limits is None else np.minimum(limits, max_tokens)
    if most is None or not (totals > most).any():
        return None
    return np.maximum(totals - most, 0)


def _without(totals: np.ndarray, excess: Optional[np.ndarray]) -> np.ndarray:
    return totals if excess is None else totals - excess


def _at(sums: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Running sums up to, and without, each index."""
    if not len(sums):
        return np.zeros(len(index), dtype=np.int64)
    return np.where(index > 0, sums[index - 1], 0)
