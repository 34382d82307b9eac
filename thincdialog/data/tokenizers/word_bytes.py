"""Find the words of many texts at once, as slices of one array of bytes."""

from typing import List, NamedTuple, Sequence, Tuple

import numpy as np
from murmurhash.mrmr import hash_bytes

from ..words import NormalForm, normalise, split_words
from .byte_tokenizer import from_bytes, to_bytes

# Added after all texts, so that a block of 8 bytes can be read at the start of every word.
_PADDING = b" " * 8
# Number of bytes up to which words are hashed together; longer words are hashed one by one,
# because they are rare.
_LONGEST = 64

# Kinds of ASCII characters that ``data.words`` distinguishes. A digit is also a letter.
_LETTER, _DIGIT, _QUOTE, _POINT, _OTHER, _SPACE, _NOT_ASCII = 1, 2, 4, 8, 16, 32, 64
_TAIL = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)


def _kind(point: int) -> int:
    char = chr(point)
    if point >= 0x80:
        return _NOT_ASCII
    if char.isalnum() or char == "_":
        return _LETTER | _DIGIT if char.isdigit() else _LETTER
    if char.isspace():
        return _SPACE
    return {"'": _QUOTE, ".": _POINT, ",": _POINT}.get(char, _OTHER)


_KINDS = bytes(map(_kind, range(256)))


class WordBytes(NamedTuple):
    """Hold the words of several texts, in order.

    data (np.ndarray): The texts in UTF-8, with padding at the end; shape (n_bytes,), uint8.
    starts, lengths (np.ndarray): Start and length of each word in bytes; shape (n_words,), int64.
    n_words (np.ndarray): Number of words of each text; shape (n_texts,), int64.
    """

    data: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    n_words: np.ndarray

    def word(self, i: int) -> bytes:
        """Return the bytes of one word."""
        return self.data[self.starts[i] : self.starts[i] + self.lengths[i]].tobytes()

    def words(self) -> List[bytes]:
        """Return the bytes of each word."""
        data = self.data.tobytes()
        ends = self.starts + self.lengths
        return [data[a:b] for a, b in zip(self.starts.tolist(), ends.tolist())]

    def hashes(self, seed: int) -> np.ndarray:
        """Return the MurmurHash3 (x86, 32 bits) of each word; shape (n_words,), uint32."""
        starts, n_blocks = self.starts, self.lengths >> 2
        blocks = np.ascontiguousarray(self.blocks(np.dtype("<u4")))
        value: np.ndarray = np.full(len(starts), seed, dtype=np.uint32)
        for i in range(min(int(n_blocks.max(initial=0)), _LONGEST // 4)):
            going = np.flatnonzero(n_blocks > i)
            mixed = value[going] ^ _scrambled(blocks[starts[going] + 4 * i])
            value[going] = _rotated(mixed, 13) * 5 + 0xE6546B64
        value ^= _scrambled(blocks[starts + 4 * n_blocks] & _TAIL[self.lengths & 3])
        value ^= self.lengths.astype(np.uint32)
        value = (value ^ value >> 16) * 0x85EBCA6B
        value = (value ^ value >> 13) * 0xC2B2AE35
        value ^= value >> 16
        for i in np.flatnonzero(self.lengths > _LONGEST).tolist():
            value[i] = hash_bytes(self.word(i), seed) & 0xFFFFFFFF
        return value

    def blocks(self, dtype: np.dtype) -> np.ndarray:
        """Return a view of the data with a number for each position, made of the bytes that start
        there.

        dtype (np.dtype): Type of these numbers, which determines their number of bytes.
        """
        return np.ndarray(len(self.data) - dtype.itemsize + 1, dtype, self.data, strides=(1,))


def pack_words(words: Sequence[bytes]) -> WordBytes:
    """Pack a list of words as the words of one text."""
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    data = np.frombuffer(b"".join([*words, _PADDING]), dtype=np.uint8)
    return WordBytes(data, lengths.cumsum() - lengths, lengths, np.array([len(words)]))


def find_words(
    texts: Sequence[str], form: NormalForm, lower: bool, end_mark: str = ""
) -> WordBytes:
    """Find the words of each text, as ``split_words(normalise(text, form, lower))`` does.

    end_mark (str): Word to add after the last word of each text; "" for none.
    """
    data, ends = _joined(texts, form, lower)
    kinds = np.frombuffer(bytearray(data).translate(_KINDS), dtype=np.uint8)
    # White space ends a word in every script, so each run between spaces can be split separately.
    places, others = _take_others(data, kinds, ends)
    starts, lengths = _ascii_words(kinds)
    if len(others) or end_mark:
        added = pack_words([*others, to_bytes(end_mark)])
        n_marks = len(ends) if end_mark else 0
        which = np.concatenate((np.arange(len(others)), np.full(n_marks, len(others))))
        positions = np.concatenate((places, ends[:n_marks]))
        which = which[positions.argsort(kind="stable")]
        positions.sort()
        before = starts.searchsorted(positions)
        lengths = np.insert(lengths, before, added.lengths[which])
        found = np.insert(starts, before, added.starts[which] + len(data))
        starts = np.insert(starts, before, positions)
        data += added.data.tobytes()
    else:
        found = starts
    n_words = np.diff(starts.searchsorted(ends, side="right"), prepend=0)
    return WordBytes(np.frombuffer(data, dtype=np.uint8), found, lengths, n_words)


def _joined(texts: Sequence[str], form: NormalForm, lower: bool) -> Tuple[bytes, np.ndarray]:
    """Return the bytes of all texts, with a space before and after each text, and the end of each
    text."""
    joined = " ".join(["", *texts, ""])
    if joined.isascii():
        data = (joined.lower() if lower else joined).encode("ascii")
        sizes = map(len, texts)
    else:
        parts = [to_bytes(normalise(text, form, lower)) for text in texts]
        data = b" ".join([b"", *parts, b""])
        sizes = map(len, parts)
    ends = (np.fromiter(sizes, np.int64, len(texts)) + 1).cumsum()
    return data + _PADDING, ends


def _ascii_words(kinds: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Return the start and length of each word in ASCII texts with spaces around each text."""
    letter, digit = kinds & _LETTER, kinds & _DIGIT
    letter[1:-1] |= (kinds[1:-1] == _QUOTE) & (letter[:-2] & letter[2:])
    letter[1:-1] |= (kinds[1:-1] == _POINT) & ((digit[:-2] & digit[2:]) != 0)
    alone = (letter == 0) & (kinds != _SPACE)
    inside = letter.view(bool)
    begins, stops = alone.copy(), alone
    begins[1:] |= inside[1:] & ~inside[:-1]
    stops[:-1] |= inside[:-1] & ~inside[1:]
    starts = np.flatnonzero(begins)
    return starts, np.flatnonzero(stops) + 1 - starts


def _take_others(
    data: bytes, kinds: np.ndarray, ends: np.ndarray
) -> Tuple[np.ndarray, List[bytes]]:
    """Return the position of each word in a run with characters other than ASCII, and these words;
    mark the runs as spaces in ``kinds``."""
    high = np.flatnonzero(kinds == _NOT_ASCII)
    if not len(high):
        return high, []
    inside = kinds != _SPACE
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    starts, stops = edges[::2], edges[1::2]
    runs = starts.searchsorted(high, side="right") - 1
    runs = runs[np.diff(runs, prepend=-1) != 0]
    text = ends.searchsorted(starts[runs])
    # Neighbouring runs of the same text are split together.
    first = np.flatnonzero(np.diff(runs, prepend=-2) + np.diff(text, prepend=-1) != 1)
    last = np.append(first[1:], len(runs)) - 1
    words: List[bytes] = []
    counts = []
    for start, stop in zip(starts[runs[first]].tolist(), stops[runs[last]].tolist()):
        found = [to_bytes(word) for word in split_words(from_bytes(data[start:stop]))]
        kinds[start:stop] = _SPACE
        words += found
        counts.append(len(found))
    return starts[runs[first]].repeat(counts), words


def _scrambled(block: np.ndarray) -> np.ndarray:
    return _rotated(block * 0xCC9E2D51, 15) * 0x1B873593


def _rotated(value: np.ndarray, bits: int) -> np.ndarray:
    return value << bits | value >> (32 - bits)
