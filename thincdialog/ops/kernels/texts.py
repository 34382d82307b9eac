"""Texts from a store of tokens, gathered for a batch (see ``examples.encoded``)."""

from typing import Any

import numpy as np

from .kernel import kernel


@kernel
def measure_conversations(found: Any, delimiter: bool, totals: Any) -> None:
    """Count the tokens of conversations.

    found (Encoded): The conversations. The last row of each of its entries is the delimiter.
    delimiter (bool): Whether all turns except the last keep their delimiter.
    totals (Ints1d): Number of tokens of each conversation, int64; written.
    """
    turns, entries = found.turns, found.entries
    for c in range(len(found.conversations)):
        number = found.conversations[c]
        begin, end = found.bounds[number], found.bounds[number + 1]
        total = np.int64(0)
        for k in range(begin, end):
            total += entries[1, turns[k]] - (not delimiter or k == end - 1)
        totals[c] = total


@kernel
def gather_conversations(
    found: Any, delimiter: bool, one_segment: int, totals: Any, gathered: Any
) -> None:
    """Copy the last token rows of each conversation.

    found, delimiter: As for ``measure_conversations``.
    one_segment (int): Number that adds one to the segment of a row.
    totals (Ints1d): Number of rows to keep of each conversation, at most its number of rows; int64.
    gathered (Ints1d): As long as all kept rows together; written.
    """
    turns, entries, tokens = found.turns, found.entries, found.tokens
    start = 0
    for c in range(len(found.conversations)):
        number = found.conversations[c]
        begin, k = found.bounds[number], found.bounds[number + 1]
        is_last, units = True, np.int64(0)
        at = stop = start + totals[c]  # Copy backwards, from the newest turn.
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
    """Number the distinct keys in the order of their first occurrence.

    keys (Ints1d): From 0, int64.
    slots (Ints1d): Zeros, one for each possible key, int32; zeros again afterwards.
    numbers (Ints1d): Number of each key, int32; written.
    firsts (Ints1d): Index of the first key with each number, int64; written.
    RETURNS (int): Number of distinct keys.
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
    found: Any, speaker_tokens: bool, delimiter: bool, one_segment: int, n_segments: int,
    most: Any, limits: Any, slots: Any
) -> Any:  # fmt: skip
    """Gather conversations and distinct replies as rows of tables, one text after another.

    found (Encoded): The conversations, and the entries of replies, some of them equal.
    speaker_tokens (bool): Whether each turn begins with a speaker token, which replies lose.
    delimiter, one_segment: As for ``gather_conversations``.
    n_segments (int): Number of rows of the conversations' table for each id, one per segment.
    most (Tuple[int, int]): Number of tokens to keep of a conversation (the last ones) and of a
        reply (the first ones).
    limits (Tuple[Ints1d, Ints1d]): Number of tokens to keep of each conversation, and of each
        label, int64; or empty. For equal replies, the lowest limit applies.
    slots (Ints1d): As for ``number_by_first_sight``.
    RETURNS (Tuple): Rows of the conversations (int32), and the begin of each and the end of the
        last (int64); these two arrays for the replies; the number of each label's reply (int32);
        the number of conversations that were cut, and of tokens cut off; and these two numbers for
        the replies.
    """
    labels, n = found.labels, len(found.conversations)
    totals = np.empty(n, np.int64)
    measure_conversations(found, delimiter, totals)
    starts, cut = _lay_out(totals, most[0], limits[0])
    gathered = np.empty(starts[n], np.int64)
    gather_conversations(found, delimiter, one_segment, totals, gathered)
    fields = gathered.view(np.int32)  # Ids and segments alternate.
    rows = np.empty(len(gathered), np.int32)
    for t in range(len(rows)):
        rows[t] = fields[2 * t] * n_segments + min(fields[2 * t + 1], n_segments - 1)
    numbers, firsts = np.empty(len(labels), np.int32), np.empty(len(labels), np.int64)
    n = number_by_first_sight(labels, slots, numbers, firsts)
    lengths = np.empty(n, np.int64)
    for k in range(n):
        lengths[k] = found.entries[1, labels[firsts[k]]] - 1 - speaker_tokens
    lowest = np.full(n if len(limits[1]) else 0, most[1], np.int64)
    for k in range(len(limits[1])):
        lowest[numbers[k]] = min(lowest[numbers[k]], limits[1][k])
    label_starts, label_cut = _lay_out(lengths, most[1], lowest)
    gathered = np.empty(label_starts[n], np.int64)
    for k in range(n):
        first = found.entries[0, labels[firsts[k]]] + speaker_tokens
        for t in range(lengths[k]):
            gathered[label_starts[k] + t] = found.tokens[first + t]
    fields = gathered.view(np.int32)
    label_rows = np.empty(len(gathered), np.int32)
    for t in range(len(label_rows)):
        label_rows[t] = fields[2 * t]
    return rows, starts, label_rows, label_starts, numbers, cut, label_cut


@kernel
def _lay_out(lengths: Any, most: int, limits: Any) -> Any:
    """Cut texts to the allowed length, and lay them out one after another.

    lengths (Ints1d): Lengths of the texts, int64; changed in place.
    most (int): Largest number of tokens of any text.
    limits (Ints1d): Largest number of tokens of each text; or empty.
    RETURNS (Tuple[Ints1d, Tuple[int, int]]): Begin of each text, and the end of the last, int64;
        how many texts were cut, and by how many tokens in total.
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
