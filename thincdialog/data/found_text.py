"""Where texts stand in a TurnStore, and how much of them is kept."""

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np


class Slices(NamedTuple):
    """Replies in the store; starts and lengths are int64."""

    tokens: np.ndarray  # of the store
    starts: np.ndarray  # first row of each reply
    lengths: np.ndarray  # tokens of each reply


class DistinctLabels(NamedTuple):
    """Different replies in the order of first sight.

    numbers (np.ndarray): Of each text the number of its reply, shape (n_texts,), int32.
    found (Slices): The replies.
    limits (Optional[np.ndarray]): Tokens to keep of each.
    """

    numbers: np.ndarray
    found: Slices
    limits: Optional[np.ndarray]


class Contexts(NamedTuple):
    """Conversations in the store, before truncation; all int64."""

    tokens: np.ndarray  # of the store
    n_turns: np.ndarray  # of each conversation
    last: np.ndarray  # one past the last turn of each conversation
    starts: np.ndarray  # first row of each turn
    lengths: np.ndarray  # tokens of each turn
    n_units: np.ndarray  # of each turn
    ends: np.ndarray  # running sum of lengths
    totals: np.ndarray  # tokens of each conversation


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
