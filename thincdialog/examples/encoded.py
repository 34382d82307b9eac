"""Token rows of examples, made in advance by an encoder that is identified by its key."""

from typing import Callable, NamedTuple, Sequence, Tuple

import numpy as np

from ..messages import Turn

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


def side_by_side(parts: Sequence[Encoded]) -> Encoded:
    """Join the examples of several parts in new arrays, one part after the other, without the turns
    and tokens of other examples."""
    n_turns, turns, entries, tokens, labels = [], [], [], [], []
    n_entries = n_tokens = 0
    for part in parts:
        starts = part.bounds[part.conversations].astype(np.int64)
        n_turns.append(part.bounds[part.conversations + 1] - starts)
        own = part.turns[slice_places(starts, n_turns[-1])]
        used, numbers = np.unique(np.concatenate((own, part.labels)), return_inverse=True)
        firsts, lengths, units = part.entries[:, used].astype(np.int64)
        turns.append(n_entries + numbers[: len(own)])
        labels.append(n_entries + numbers[len(own) :])
        entries.append((n_tokens + lengths.cumsum() - lengths, lengths, units))
        tokens.append(part.tokens[slice_places(firsts, lengths)].astype(np.int64))
        n_entries, n_tokens = n_entries + len(used), n_tokens + len(tokens[-1])
    bounds = np.append(0, np.concatenate(n_turns).cumsum())
    return Encoded(
        bounds,
        np.concatenate(turns).astype(np.int32),
        np.concatenate(entries, axis=1),
        np.concatenate(tokens),
        np.arange(len(bounds) - 1),
        np.concatenate(labels),
    )


def with_equal_labels(found: Encoded, label_ids: np.ndarray) -> Encoded:
    """Let equal labels have one entry.

    label_ids (np.ndarray): Number of each example's label, equal for equal labels; shape (n,).
    """
    _, firsts, numbers = np.unique(label_ids, return_index=True, return_inverse=True)
    return found._replace(labels=found.labels[firsts[numbers]])


def slice_places(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the indices of all elements of some slices, one slice after the other; int64.

    starts, lengths (np.ndarray): Start and length of each slice, shape (n_slices,), int64.
    """
    ends = lengths.cumsum()
    places: np.ndarray = (starts - ends + lengths).repeat(lengths)
    places += np.arange(len(places))
    return places
