"""Where texts stand in a TurnStore, and how much of them is kept."""

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from .turn_store import gather


class Slices(NamedTuple):
    """Replies in the store; starts and lengths are int64."""

    tokens: np.ndarray  # of the store
    starts: np.ndarray  # first row of each reply
    lengths: np.ndarray  # tokens of each reply


class FoundConversations:
    """Conversations as turns in a store; ``KnownConversations`` without compiled kernels.

    tokens (np.ndarray): Of the store.
    entries (np.ndarray): First row, rows and units of each turn, one conversation after
        the other, shape (3, n_turns), int64; taken over.
    n_turns (np.ndarray): Of each conversation, shape (n,), int64.
    delimiter (bool): Whether all turns but the last end with a token of their own.
    totals (np.ndarray): Tokens of each before truncation, shape (n,), int64.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        entries: np.ndarray,
        n_turns: np.ndarray,
        delimiter: bool,
    ):
        self._tokens, self._n_turns = tokens, n_turns
        self._starts, self._lengths, self._n_units = entries
        self._last = n_turns.cumsum()  # one past the last turn of each
        if delimiter:
            self._lengths[self._last[n_turns > 0] - 1] -= 1
        else:
            self._lengths -= 1  # the store keeps a delimiter behind every turn
        self._ends = self._lengths.cumsum()
        self._before = sums_before(self._ends, self._last - n_turns)
        self.totals = sums_before(self._ends, self._last) - self._before

    def gather(self, totals: np.ndarray) -> np.ndarray:
        """The last token rows of each; shape (n_tokens, 2), int32.

        totals (np.ndarray): How many of each, shape (n,), int64.
        """
        starts, lengths, n_turns = self._starts, self._lengths, self._n_turns
        # Units behind each turn, to the end of its conversation.
        units = self._n_units.cumsum()
        segments = sums_before(units, self._last).repeat(n_turns) - units
        if totals is not self.totals:
            before = self._ends - lengths - self._before.repeat(n_turns)
            cut = np.clip((self.totals - totals).repeat(n_turns) - before, 0, lengths)
            starts = starts + cut
            lengths = lengths - cut
        return gather(self._tokens, starts, lengths, segments)


def by_first_sight(keys: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Number equal keys alike, in the order of first sight.

    keys (np.ndarray): Shape (n,), int64.
    RETURNS (Tuple[np.ndarray, np.ndarray]): The number of each key, shape (n,), int32, and
        of each number the place of its first key, int64.
    """
    _, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
    order = firsts.argsort()
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order] = np.arange(len(order))
    return numbers[places], firsts[order]


def excess_of(
    totals: np.ndarray, max_tokens: int, limits: Optional[np.ndarray]
) -> Optional[np.ndarray]:
    """How many tokens of each row are too many; None where nothing is to be cut."""
    most: Any = limits
    if max_tokens:
        most = max_tokens if limits is None else np.minimum(limits, max_tokens)
    if most is None or not (totals > most).any():
        return None
    return np.maximum(totals - most, 0)


def without(totals: np.ndarray, excess: Optional[np.ndarray]) -> np.ndarray:
    """The lengths that are left of some."""
    return totals if excess is None else totals - excess


def sums_before(sums: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Running sums up to, and without, each index."""
    if not len(sums):
        return np.zeros(len(index), dtype=np.int64)
    return np.where(index > 0, sums[index - 1], 0)
