from typing import Dict, Iterable, List, Optional, Tuple

import numpy as np
from murmurhash.mrmr import hash_bytes

from ...registry import registry
from ..special_tokens import N_SPECIAL
from ..words import NormalForm, normalise, split_words
from .byte_ids import to_bytes
from .tokenizer import Tokenizer, check_range

# Joins the hashes of neighbouring words: an odd number, so nothing of them is lost.
_JOIN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_MAX_WORDS = 1 << 18  # remembered; more are hashed again when they come


@registry.tokenizers("thincdialog.HashNgrams.v1")
class HashNgramTokenizer(Tokenizer):
    """Word n-grams, and character n-grams if wanted, hashed into a fixed number of
    rows. Needs no vocabulary and no texts beforehand; different n-grams may share
    a row. The same text has the same ids in every process and on every machine.

    The features of a text come word by word: the word, the n-grams that end with
    it, its character n-grams (with "<" and ">" for its ends).

    n_rows (int): Number of rows, 1 or more.
    ngrams (int): Longest word n-gram, 1 or more.
    char_ngrams (Optional[List[int]]): Shortest and longest character n-gram within
        a word, as in [3, 5]; None for none.
    lower (bool): Whether to put everything into lower case.
    normalize (str): Normal form of Unicode: "NFC", "NFKC" or "none".
    RAISES (ValueError): If a number is out of range.
    SOURCE: Bojanowski et al. 2017, https://arxiv.org/abs/1607.04606, section 3.2
    """

    needs_texts = False

    def __init__(
        self,
        *,
        n_rows: int = 1 << 17,
        ngrams: int = 2,
        char_ngrams: Optional[List[int]] = None,
        lower: bool = True,
        normalize: NormalForm = "NFC",
    ):
        self.n_rows = check_range("n_rows", n_rows, 1)
        self.ngrams = check_range("ngrams", ngrams, 1)
        if char_ngrams is not None and not (
            len(char_ngrams) == 2 and 1 <= char_ngrams[0] <= char_ngrams[1]
        ):
            raise ValueError(f"char_ngrams = {char_ngrams}, expected [shortest, longest]")
        self.char_ngrams = char_ngrams
        self.lower = lower
        self.normalize = normalize
        # Its hash, its ids as a word, and those of its character n-grams.
        self._words: Dict[str, Tuple[int, List[int], List[int]]] = {}

    @property
    def n_ids(self) -> int:
        return N_SPECIAL + self.n_rows

    def pieces(self, text: str) -> List[str]:
        words = self._split(text)
        return [
            piece
            for i, word in enumerate(words)
            for piece in (
                *self._word_pieces(word),
                *(" ".join(words[i - n : i + 1]) for n in range(1, min(self.ngrams, i + 1))),
                *self._char_pieces(word),
            )
        ]

    def encode(self, text: str) -> np.ndarray:
        entries = [self._words.get(word) or self._add(word) for word in self._split(text)]
        ids: List[int] = []
        n_rows, longest = self.n_rows, self.ngrams - 1
        # Hashes of the n-grams that ended with the word before: one word, two, ...
        before: List[int] = []
        for word_hash, own, of_characters in entries:
            ids += own
            ending = [word_hash]
            for each in before:
                joined = (each * _JOIN + word_hash) * _JOIN & _MASK
                # The upper half: it depends on every bit of both hashes.
                ids.append((joined >> 32) % n_rows + N_SPECIAL)
                ending.append(joined)
            ids += of_characters
            before = ending[:longest]
        return np.array(ids, dtype=np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """Rows cannot be turned back into text: their numbers, as in "#12 #7"."""
        return " ".join(f"#{each - N_SPECIAL}" for each in ids if each >= N_SPECIAL)

    def _split(self, text: str) -> List[str]:
        return split_words(normalise(text, self.normalize, self.lower))

    def _word_pieces(self, word: str) -> List[str]:
        return [word]

    def _char_pieces(self, word: str) -> List[str]:
        if self.char_ngrams is None:
            return []
        shortest, longest = self.char_ngrams
        marked = f"<{word}>"
        return [
            marked[start : start + n]
            for n in range(shortest, min(longest, len(marked) - 1) + 1)
            for start in range(len(marked) - n + 1)
        ]

    def _add(self, word: str) -> Tuple[int, List[int], List[int]]:
        if len(self._words) >= _MAX_WORDS:
            self._words.clear()
        # Seeds keep a word apart from the same characters within a word.
        word_hash = hash_bytes(to_bytes(word), 1) & 0xFFFFFFFF
        hashes = [hash_bytes(to_bytes(piece), 2) & 0xFFFFFFFF for piece in self._char_pieces(word)]
        of_characters = [each % self.n_rows + N_SPECIAL for each in hashes]
        self._words[word] = entry = (word_hash, self._word_ids(word, word_hash), of_characters)
        return entry

    def _word_ids(self, word: str, word_hash: int) -> List[int]:
        return [word_hash % self.n_rows + N_SPECIAL]
