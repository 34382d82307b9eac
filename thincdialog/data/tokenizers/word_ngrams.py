"""A tokenizer with a vocabulary of words and hashed n-grams, as in fastText."""

from typing import Any, Dict, Iterable, List, Optional

import numpy as np

from ...registry import registry
from ..special_tokens import N_SPECIAL
from ..vocabulary import Vocabulary
from ..words import NormalForm, join_words
from .hash_ngrams import HashNgramTokenizer
from .vocabulary_tokenizer import HasVocabulary
from .word_bytes import WordBytes

# Word at the end of every text. No word of a text is equal to it.
END_MARK = "</s>"


@registry.tokenizers("thincdialog.WordNgrams.v1")
class WordNgramTokenizer(HasVocabulary, HashNgramTokenizer):
    """Use the features of fastText: every known word has its own row, and word n-grams (and
    character n-grams, if wanted), including those of unknown words, are hashed into a fixed
    number of rows.

    The features of a text have the same order as in ``thincdialog.HashNgrams.v1``.

    n_rows (int): Number of rows of the n-grams, 1 or more.
    ngrams (int): Length of the longest word n-gram in words, 1 or more.
    char_ngrams (Optional[List[int]]): Length of the shortest and of the longest character n-gram,
        such as [3, 5]; None for no character n-grams.
    mark_end (bool): Whether the end of a text counts as a word, so that n-grams can include it.
    lower (bool): Whether to put everything into lower case.
    normalize (str): Normal form of Unicode: "NFC", "NFKC" or "none".
    min_freq (int): Minimum count of a word in the vocabulary, 1 or more; rarer words are unknown.
    max_size (int): Maximum number of words, the most frequent ones; 0 for no limit.
    RAISES (ValueError): If a number is out of range.
    SOURCE: Joulin et al. 2016, https://arxiv.org/abs/1607.01759
    """

    def __init__(
        self,
        *,
        n_rows: int = 1 << 17,
        ngrams: int = 2,
        char_ngrams: Optional[List[int]] = None,
        mark_end: bool = True,
        lower: bool = True,
        normalize: NormalForm = "NFC",
        min_freq: int = 1,
        max_size: int = 0,
    ):
        grams: Dict[str, Any] = {"n_rows": n_rows, "ngrams": ngrams, "char_ngrams": char_ngrams}
        HashNgramTokenizer.__init__(self, lower=lower, normalize=normalize, **grams)
        self.mark_end = mark_end
        self._end_mark = END_MARK if mark_end else ""
        # Order of ids: special tokens, n-grams, the end mark (if there is one), words.
        self._end = N_SPECIAL + n_rows
        first = self._end + mark_end
        HasVocabulary.__init__(self, min_freq=min_freq, max_size=max_size, first_id=first)

    def split(self, text: str) -> List[str]:
        return HashNgramTokenizer._split(self, text)

    def _set(self, vocabulary: Vocabulary) -> None:
        super()._set(vocabulary)
        if self.mark_end:
            self._ids[END_MARK] = self._end

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the known words. Ids of n-grams are ignored."""
        tokens, first = self.vocabulary.tokens, self.first_id
        return join_words(tokens[each - first] for each in ids if each >= first)

    def _split(self, text: str) -> List[str]:
        return [*self.split(text), END_MARK] if self.mark_end else self.split(text)

    def _word_pieces(self, word: str) -> List[str]:
        return [word] if word in self._known() else []

    def _char_pieces(self, word: str) -> List[str]:
        return [] if word == END_MARK else super()._char_pieces(word)

    def _own_ids(self, words: WordBytes, hashes: np.ndarray) -> np.ndarray:
        return self._find(words, hashes)
