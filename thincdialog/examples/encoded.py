"""Token rows of examples, made in advance by an encoder that is identified by its key."""

from typing import Callable, NamedTuple, Sequence, Tuple

import numpy as np

from ..messages import Turn
from .slices import slice_places

# Returns the token rows of all turns, one turn after the other, and for each turn the number of
# its rows and of its units (see ``data.TurnStore``).
LayOut = Callable[[Sequence[Turn]], Tuple[np.ndarray, np.ndarray, np.ndarray]]


class Encoding(NamedTuple):
    """Hold an agent's encoding of turns, so that another process can make the tokens.

    key (str): Identifies the encoding.
    lay_out (LayOut): Makes the tokens.
    history_size (int): Turns of an example to read, including its text; -1 for all.
    has_speakers (bool): Whether the tokens of a turn depend on its speaker.
    """

    key: str
    lay_out: LayOut
    history_size: int
    has_speakers: bool


class Tokens(NamedTuple):
    """Hold token rows of the turns of a table.

    key, history_size, has_speakers: See ``Encoding``.
    keys (np.ndarray): The distinct turns, as in ``Table.turns``; int64.
    entries (np.ndarray): For each turn its first row, the number of its rows, and the number of
        its units; shape (3, n_keys), int64.
    rows (np.ndarray): Token rows of all turns, int64.
    """

    key: str
    history_size: int
    has_speakers: bool
    keys: np.ndarray
    entries: np.ndarray
    rows: np.ndarray


class Encoded(NamedTuple):
    """Hold the tokens of examples as a ``TextEncoder`` would make them.

    bounds (np.ndarray): Start of each conversation's turns, and the end of the last; integers.
    turns (np.ndarray): Entries of the turns of all conversations; integers.
    entries (np.ndarray): For each entry its first token row, the number of its rows, and the
        number of its units; shape (3, n_entries), int64.
    tokens (np.ndarray): Token rows (see ``data.turn_store.TurnStore``), int64; or only ids, of
        any smaller type, if all segments are 0.
    conversations (np.ndarray): Number of each example's conversation, shape (n,), int64.
    labels (np.ndarray): Entry of each example's first label, shape (n,), int64; equal labels
        have one entry. For examples without labels, the entry has no meaning.
    """

    bounds: np.ndarray
    turns: np.ndarray
    entries: np.ndarray
    tokens: np.ndarray
    conversations: np.ndarray
    labels: np.ndarray


def copied(encoded: Encoded) -> Encoded:
    """Copy the examples into new arrays without the turns and tokens of other examples."""
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
    """Join the examples of several parts, one part after the other."""
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
