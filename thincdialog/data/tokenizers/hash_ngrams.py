from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
from murmurhash.mrmr import hash_bytes

from ...examples.encoded import slice_places
from ...registry import registry
from ..special_tokens import N_SPECIAL
from ..words import NormalForm, normalise, split_words
from .byte_tokenizer import from_bytes, to_bytes
from .tokenizer import Tokenizer, check_range
from .word_bytes import WordBytes, find_words
from .word_table import SEED

# Multiplier that joins the hashes of neighbouring words; odd, so that no bits are lost.
_JOIN = 0x9E3779B97F4A7C15
# Maximum number of words whose character n-grams are cached; a full cache is emptied.
_MAX_WORDS = 1 << 16
_NO_IDS = np.zeros(0, dtype=np.int32)


@registry.tokenizers("thincdialog.HashNgrams.v1")
class HashNgramTokenizer(Tokenizer):
    """Hash word n-grams, and character n-grams if wanted, into a fixed number of rows, which
    n-grams may share. The tokenizer needs no training texts, and a text has the same ids on every
    machine.

    The features of a text are ordered by word: first the word, then the word n-grams that end with
    this word, then its character n-grams (with "<" and ">" for the ends of the word).

    n_rows (int): Number of rows, 1 or more.
    ngrams (int): Length of the longest word n-gram in words, 1 or more.
    char_ngrams (Optional[List[int]]): Length of the shortest and of the longest character n-gram,
        such as [3, 5]; None for no character n-grams.
    lower (bool): Whether to put everything into lower case.
    normalize (str): Normal form of Unicode: "NFC", "NFKC" or "none".
    RAISES (ValueError): If a number is out of range.
    SOURCE: Bojanowski et al. 2017, https://arxiv.org/abs/1607.04606, section 3.2
    """

    needs_texts = False
    _end_mark = ""  # Word to add at the end of each text; "" for none.

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
        # Maps a word in UTF-8 to the ids of its character n-grams, as bytes.
        self._characters: Dict[bytes, bytes] = {}

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
        return self._encode_group([text])[0]

    def _encode_group(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        words = find_words(texts, self.normalize, self.lower, self._end_mark)
        hashes = words.hashes(SEED)
        own = self._own_ids(words, hashes)
        has_own = own >= 0
        texts_end = words.n_words.cumsum()
        place = np.arange(len(own)) - (texts_end - words.n_words).repeat(words.n_words)
        n_ngrams = np.minimum(place, self.ngrams - 1)
        characters, n_characters = self._of_characters(words)
        n_ids = has_own + n_ngrams + n_characters
        ends = n_ids.cumsum()
        ids = np.empty(n_ids.sum(), dtype=np.int32)
        at = ends - n_ids
        ids[at[has_own]] = own[has_own]
        at += has_own
        word_hashes = ending = hashes.astype(np.uint64)
        for n in range(1, int(n_ngrams.max(initial=0)) + 1):
            # Where an n-gram would begin before its text, the hash is meaningless and not used.
            ending = np.append(ending[:1], (ending[:-1] * _JOIN + word_hashes[1:]) * _JOIN)
            here = np.flatnonzero(n_ngrams >= n)
            ids[at[here] + n - 1] = (ending[here] >> 32) % self.n_rows + N_SPECIAL
        ids[slice_places(at + n_ngrams, n_characters)] = characters
        return ids, np.diff(np.append(0, ends)[texts_end], prepend=0)

    def _own_ids(self, words: WordBytes, hashes: np.ndarray) -> np.ndarray:
        """Return the id of each word itself; -1 for a word without an id."""
        return (hashes % self.n_rows).astype(np.int64) + N_SPECIAL

    def _of_characters(self, words: WordBytes) -> Tuple[np.ndarray, np.ndarray]:
        """Return the ids of the character n-grams, word by word, int32, and the number of these ids
        for each word, int64."""
        if self.char_ngrams is None:
            return _NO_IDS, np.zeros_like(words.lengths)
        known = self._characters.get
        found = [
            self._add_characters(word) if (ids := known(word)) is None else ids
            for word in words.words()
        ]
        sizes = np.fromiter(map(len, found), np.int64, len(found))
        return np.frombuffer(b"".join(found), dtype=np.int32), sizes // 4

    def _add_characters(self, word: bytes) -> bytes:
        if len(self._characters) >= _MAX_WORDS:
            self._characters.clear()
        ids = np.array(self._char_ids(from_bytes(word)), dtype=np.int32).tobytes()
        self._characters[word] = ids
        return ids

    def word_ids(self, texts: Iterable[str]) -> Dict[str, int]:
        words = dict.fromkeys(word for text in texts for word in self._split(text))
        return {word: self._row_of(word, SEED) for word in words}

    def decode(self, ids: Iterable[int]) -> str:
        """Return the numbers of the rows, such as "#12 #7", because a hash cannot be reversed."""
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

    def _char_ids(self, word: str) -> List[int]:
        # A different seed, so that a word and an equal character n-gram have different hashes.
        return [self._row_of(piece, SEED + 1) for piece in self._char_pieces(word)]

    def _row_of(self, piece: str, seed: int) -> int:
        return (hash_bytes(to_bytes(piece), seed) & 0xFFFFFFFF) % self.n_rows + N_SPECIAL
