"""Texts from a store of tokens, put together for a batch (see ``data.turn_store``)."""

from typing import Any

import numpy as np

from .kernel import kernel


@kernel
def gather_slices(values: Any, starts: Any, lengths: Any, added: Any, gathered: Any) -> None:
    """Copy slices of an array, and add a number to each.

    values (Ints1d): int64.
    starts, lengths, added (Ints1d): Of each slice where it begins, its length, and what to
        add to all its values; shape (n_slices,), int64.
    gathered (Ints1d): As long as all slices together; written.
    """
    place = 0
    for k in range(len(starts)):
        start, more = starts[k], added[k]
        for t in range(start, start + lengths[k]):
            gathered[place] = values[t] + more
            place += 1


@kernel
def measure_conversations(
    conversations: Any, bounds: Any, turns: Any, entries: Any, delimiter: bool, totals: Any
) -> None:
    """Count the tokens of conversations.

    conversations (Ints1d): Their numbers, int64.
    bounds (Ints1d): Where the turns of each conversation of the store begin, and end.
    turns (Ints1d): Entries of all their turns.
    entries (Ints2d): Of each entry its first token row, the number of its rows, and of its
        units; the last row is the delimiter; shape (3, n_entries), int64.
    delimiter (bool): Whether all turns but the last keep theirs.
    totals (Ints1d): Tokens of each, int64; written.
    """
    for c in range(len(conversations)):
        begin, end = bounds[conversations[c]], bounds[conversations[c] + 1]
        total = np.int64(0)
        for k in range(begin, end):
            total += entries[1, turns[k]] - (not delimiter or k == end - 1)
        totals[c] = total


@kernel
def gather_conversations(
    conversations: Any, bounds: Any, turns: Any, entries: Any, tokens: Any, delimiter: bool,
    one_segment: int, totals: Any, gathered: Any
) -> None:  # fmt: skip
    """Copy the token rows of conversations, the last ones of each.

    conversations, bounds, turns, entries, delimiter: As above.
    tokens (Ints1d): Token rows of the store, int64.
    one_segment (int): What adds one to the segment of a row.
    totals (Ints1d): How many rows to keep of each, at most as many as it has; int64.
    gathered (Ints1d): As long as all of them; written.
    """
    start = 0
    for c in range(len(conversations)):
        begin, k = bounds[conversations[c]], bounds[conversations[c] + 1]
        is_last, units = True, np.int64(0)
        at = stop = start + totals[c]  # From the end, where a turn's place is known.
        while k > begin and at > start:
            k -= 1
            entry = turns[k]
            length = entries[1, entry] - (not delimiter or is_last)
            kept = min(length, at - start)
            first = entries[0, entry] + length - kept
            at -= kept
            for t in range(kept):
                gathered[at + t] = tokens[first + t] + units * one_segment
            units += entries[2, entry]
            is_last = False
        start = stop


@kernel
def number_by_first_sight(keys: Any, slots: Any, numbers: Any, firsts: Any) -> int:
    """Number equal keys alike, in the order of first sight.

    keys (Ints1d): From 0, int64.
    slots (Ints1d): Zeros, one for each possible key, int32; zeros again afterwards.
    numbers (Ints1d): Of each key, int32; written.
    firsts (Ints1d): Of each number the place of its first key, int64; written.
    RETURNS (int): How many numbers there are.
    """
    n = 0
    for i in range(len(keys)):
        if slots[keys[i]] == 0:
            firsts[n] = i
            n += 1
            slots[keys[i]] = n
        numbers[i] = slots[keys[i]] - 1
    for i in range(len(keys)):
        slots[keys[i]] = 0
    return n
