"""A hash table that looks up the words of many texts at once."""

from typing import Dict

import numpy as np

from .byte_tokenizer import to_bytes
from .word_bytes import WordBytes, pack_words

SEED = 1  # Seed of the hashes of words.
_BLOCK = np.dtype("<u8")
_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=_BLOCK)


class WordTable:
    """Look up the ids of words in a hash table with open addressing. Words with equal hashes are
    also compared byte by byte.

    ids (Dict[str, int]): Words and their ids. The first words are found fastest.
    """

    def __init__(self, ids: Dict[str, int]):
        self._words = words = pack_words(list(map(to_bytes, ids)))
        self._ids = np.fromiter(ids.values(), np.int64, len(ids))
        self._hashes = words.hashes(SEED)
        blocks = words.blocks(_BLOCK)[words.starts]
        self._first = blocks & _FIRST_BYTES[np.minimum(words.lengths, 8)]
        self._slots = np.full(4 << len(ids).bit_length(), -1, dtype=np.int64)
        self._last = self._slots.size - 1
        _, first = np.unique(self._hashes, return_index=True)
        numbers = np.sort(first)
        slots = self._hashes[numbers] & self._last
        while len(numbers):
            free = self._slots[slots] < 0
            # If several words have the same slot, the first one gets it: the last assignment wins,
            # and the order is reversed.
            self._slots[slots[free][::-1]] = numbers[free][::-1]
            left = self._slots[slots] != numbers
            numbers, slots = numbers[left], (slots[left] + 1) & self._last
        # Words whose hash is equal to that of another word in the table; usually there are none.
        others = np.setdiff1d(np.arange(len(ids)), first)
        self._others = {words.word(i): self._ids[i] for i in others.tolist()}

    def find(self, words: WordBytes, hashes: np.ndarray) -> np.ndarray:
        """Return the id of each word, -1 for unknown words; shape (n_words,), int64.

        hashes (np.ndarray): Hashes of the words with ``SEED``, shape (n_words,), uint32.
        """
        numbers = self._with_hash(hashes)
        found = np.flatnonzero(numbers >= 0)
        same = self._are_equal(words, found, numbers[found])
        ids = np.full(len(numbers), -1, dtype=np.int64)
        ids[found[same]] = self._ids[numbers[found[same]]]
        if self._others:
            for i in found[~same].tolist():
                ids[i] = self._others.get(words.word(i), -1)
        return ids

    def _with_hash(self, hashes: np.ndarray) -> np.ndarray:
        """Return the number of the known word with each hash, or -1."""
        numbers = self._slots[hashes & self._last]
        left = np.flatnonzero((numbers >= 0) & (self._hashes[numbers] != hashes))
        step = 1
        while len(left):
            number = self._slots[(hashes[left] + step) & self._last]
            numbers[left] = number
            left = left[(number >= 0) & (self._hashes[number] != hashes[left])]
            step += 1
        return numbers

    def _are_equal(self, words: WordBytes, which: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return whether words are equal to known words, byte by byte; bool.

        which (np.ndarray): Numbers of the words to compare.
        known (np.ndarray): For each of them, the number of the known word.
        """
        starts, lengths = words.starts[which], words.lengths[which]
        blocks = words.blocks(_BLOCK)
        first = blocks[starts] & _FIRST_BYTES[np.minimum(lengths, 8)]
        same = (first == self._first[known]) & (lengths == self._words.lengths[known])
        known_blocks = self._words.blocks(_BLOCK)
        going, i = np.flatnonzero(same & (lengths > 8)), 8
        while len(going):
            differ = blocks[starts[going] + i] ^ known_blocks[self._words.starts[known[going]] + i]
            left = np.minimum(lengths[going] - i, 8)
            same[going] = (differ & _FIRST_BYTES[left]) == 0
            i += 8
            going = going[same[going] & (lengths[going] > i)]
        return same
