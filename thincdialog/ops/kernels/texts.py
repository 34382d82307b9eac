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


@kernel
def pack_texts(
    store: Any, conversations: Any, labels: Any, speaker_tokens: bool, delimiter: bool,
    one_segment: int, n_segments: int, most: Any, limits: Any, slots: Any
) -> Any:  # fmt: skip
    """Conversations and different replies as rows of tables, one text after another.

    store (StoredTurns): It has the following.
    conversations (Ints1d): Their numbers, int64.
    labels (Ints1d): Entries of replies, some the same, int64.
    speaker_tokens (bool): Whether each turn begins with its speaker's, which replies lose.
    delimiter, one_segment: As above.
    n_segments (int): Rows that the conversations' table has for each id, one a segment.
    most (Tuple[int, int]): Tokens to keep of a conversation, the last; of a reply, the first.
    limits (Tuple[Ints1d, Ints1d]): The same for each by itself, int64; or empty. Of equal
        replies the lowest holds.
    slots (Ints1d): As for ``number_by_first_sight``.
    RETURNS (Tuple): Rows of the conversations, int32, where each begins and the end of the
        last, int64; the same of the replies; the number of each label's reply, int32; how
        many conversations were cut, and tokens cut off; the same of the replies.
    """
    n = len(conversations)
    totals = np.empty(n, np.int64)
    measure_conversations(
        conversations, store.bounds, store.turns, store.entries, delimiter, totals
    )
    starts, cut = _lay_out(totals, most[0], limits[0])
    gathered = np.empty(starts[n], np.int64)
    gather_conversations(
        conversations, store.bounds, store.turns, store.entries, store.tokens, delimiter,
        one_segment, totals, gathered
    )  # fmt: skip
    fields = gathered.view(np.int32)  # An id and a segment in turn.
    rows = np.empty(len(gathered), np.int32)
    for t in range(len(rows)):
        rows[t] = fields[2 * t] * n_segments + min(fields[2 * t + 1], n_segments - 1)
    numbers, firsts = np.empty(len(labels), np.int32), np.empty(len(labels), np.int64)
    n = number_by_first_sight(labels, slots, numbers, firsts)
    lengths = np.empty(n, np.int64)
    for k in range(n):
        lengths[k] = store.entries[1, labels[firsts[k]]] - 1 - speaker_tokens
    lowest = np.full(n if len(limits[1]) else 0, most[1], np.int64)
    for k in range(len(limits[1])):
        lowest[numbers[k]] = min(lowest[numbers[k]], limits[1][k])
    label_starts, label_cut = _lay_out(lengths, most[1], lowest)
    gathered = np.empty(label_starts[n], np.int64)
    for k in range(n):
        first = store.entries[0, labels[firsts[k]]] + speaker_tokens
        for t in range(lengths[k]):
            gathered[label_starts[k] + t] = store.tokens[first + t]
    fields = gathered.view(np.int32)
    label_rows = np.empty(len(gathered), np.int32)
    for t in range(len(label_rows)):
        label_rows[t] = fields[2 * t]
    return rows, starts, label_rows, label_starts, numbers, cut, label_cut


@kernel
def _lay_out(lengths: Any, most: int, limits: Any) -> Any:
    """Cut texts to what is allowed, and lay them out one after another.

    lengths (Ints1d): Of the texts, int64; changed in place.
    most (int): Tokens of a text.
    limits (Ints1d): The same for each; or empty.
    RETURNS (Tuple[Ints1d, Tuple[int, int]]): Where each begins, and the end of the last,
        int64; how many were cut, and by how many tokens together.
    """
    starts = np.zeros(len(lengths) + 1, np.int64)
    n_texts, n_tokens = 0, 0
    for k in range(len(lengths)):
        kept = min(lengths[k], most)
        if len(limits):
            kept = min(kept, limits[k])
        if kept < lengths[k]:
            n_texts += 1
            n_tokens += lengths[k] - kept
            lengths[k] = kept
        starts[k + 1] = starts[k] + kept
    return starts, (n_texts, n_tokens)
