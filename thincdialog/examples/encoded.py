"""Token rows of examples that were made before, by an encoder that is known by its key."""

from typing import Callable, NamedTuple, Sequence, Tuple

import numpy as np

from ..messages import Turn
from .slices import slice_places

# Gives of turns the rows of their tokens one after the other, and of each turn the number of its
# rows and of its units (see ``data.TurnStore``).
LayOut = Callable[[Sequence[Turn]], Tuple[np.ndarray, np.ndarray, np.ndarray]]


class Encoding(NamedTuple):
    """How an agent makes tokens of turns, for who does it for him.

    key (str): Tells it from any other way.
    lay_out (LayOut): Makes them.
    history_size (int): Turns of an example that are read, its text counted; -1 for all.
    has_speakers (bool): Whether it matters who speaks.
    """

    key: str
    lay_out: LayOut
    history_size: int
    has_speakers: bool


class Tokens(NamedTuple):
    """Token rows of the turns of a table.

    key, history_size, has_speakers: See ``Encoding``.
    keys (np.ndarray): The different turns, as in ``Table.turns``; int64.
    entries (np.ndarray): Of each its first row, and the numbers of its rows and of its units;
        shape (3, n_keys), int64.
    rows (np.ndarray): All rows, int64.
    """

    key: str
    history_size: int
    has_speakers: bool
    keys: np.ndarray
    entries: np.ndarray
    rows: np.ndarray


class Encoded(NamedTuple):
    """What a ``TextEncoder`` would make of some examples.

    bounds (np.ndarray): Where the turns of each conversation begin, and end; whole numbers.
    turns (np.ndarray): Entries of all their turns; whole numbers.
    entries (np.ndarray): Of each entry its first token row, and the numbers of its rows and of
        its units; shape (3, n_entries), int64.
    tokens (np.ndarray): Token rows (see ``data.turn_store.TurnStore``), int64; or ids alone, of
        any smaller kind, where all segments are 0.
    conversations (np.ndarray): Number of each example's conversation, shape (n,), int64.
    labels (np.ndarray): Entry of each example's first label, shape (n,), int64; equal labels
        have one entry. Examples without labels have any.
    """

    bounds: np.ndarray
    turns: np.ndarray
    entries: np.ndarray
    tokens: np.ndarray
    conversations: np.ndarray
    labels: np.ndarray


def copied(encoded: Encoded) -> Encoded:
    """The same examples in arrays that hold nothing else; as int64."""
    bounds, turns, entries, tokens, conversations, labels = encoded
    starts = bounds[conversations].astype(np.int64)
    n_turns = bounds[conversations + 1] - starts
    used = np.concatenate((turns[slice_places(starts, n_turns)], labels)).astype(np.int64)
    places, numbers = np.unique(used, return_inverse=True)
    firsts, lengths, units = entries[:, places].astype(np.int64)
    n = int(n_turns.sum())
    return Encoded(
        np.append(0, n_turns.cumsum()),
        numbers[:n].astype(np.int32),
        np.stack((lengths.cumsum() - lengths, lengths, units)),
        tokens[slice_places(firsts, lengths)].astype(np.int64),
        np.arange(len(conversations)),
        numbers[n:],
    )


def side_by_side(parts: Sequence[Encoded]) -> Encoded:
    """The examples of several, those of one behind those of the other."""
    whole = [copied(part) for part in parts]
    n_turns, n_entries, n_tokens, n_examples = (
        np.cumsum([0, *sizes])
        for sizes in zip(
            *((len(w.turns), w.entries.shape[1], len(w.tokens), len(w.labels)) for w in whole)
        )
    )
    bounds = [part.bounds[:-1] + first for part, first in zip(whole, n_turns)]
    entries = [part.entries + np.array([[first], [0], [0]]) for part, first in zip(whole, n_tokens)]
    return Encoded(
        np.concatenate([*bounds, n_turns[-1:]]),
        np.concatenate([part.turns + first for part, first in zip(whole, n_entries)]),
        np.concatenate(entries, axis=1),
        np.concatenate([part.tokens for part in whole]),
        np.concatenate([part.conversations + first for part, first in zip(whole, n_examples)]),
        np.concatenate([part.labels + first for part, first in zip(whole, n_entries)]),
    )
