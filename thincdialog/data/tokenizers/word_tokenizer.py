from typing import Iterable, List, Sequence, Tuple

import numpy as np

from ...examples.slices import slice_places
from ...registry import registry
from ..special_tokens import N_SPECIAL, UNKNOWN
from ..words import NormalForm, join_words, normalise, split_words
from .vocabulary_tokenizer import VocabularyTokenizer
from .word_bytes import WordBytes, find_words
from .word_table import SEED


@registry.tokenizers("thincdialog.Words.v1")
class WordTokenizer(VocabularyTokenizer):
    """Split texts in any script into words and punctuation marks (``data.words`` has the rules).

    lower (bool): Whether to put everything into lower case.
    normalize (str): Normal form of Unicode: "NFC", "NFKC" or "none".
    min_freq, max_size, byte_fallback: See ``VocabularyTokenizer``.
    """

    def __init__(
        self,
        *,
        lower: bool = True,
        normalize: NormalForm = "NFC",
        min_freq: int = 1,
        max_size: int = 0,
        byte_fallback: bool = False,
    ):
        limits = {"min_freq": min_freq, "max_size": max_size}
        super().__init__(lower=lower, byte_fallback=byte_fallback, **limits)
        self.normalize = normalize

    def split(self, text: str) -> List[str]:
        return split_words(normalise(text, self.normalize, self.lower))

    def join(self, pieces: Iterable[str]) -> str:
        return join_words(pieces)

    def _encode_group(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        words = find_words(texts, self.normalize, self.lower)
        ids = self._find(words, words.hashes(SEED))
        unknown = ids < 0
        if self.byte_fallback and unknown.any():
            return self._filled_with_bytes(words, ids, unknown)
        ids[unknown] = UNKNOWN
        return ids.astype(np.int32), words.n_words

    def _filled_with_bytes(
        self, words: WordBytes, known: np.ndarray, unknown: np.ndarray
    ) -> Tuple[np.ndarray, np.ndarray]:
        texts_end = words.n_words.cumsum()
        after_bytes = np.append(False, unknown[1:] & unknown[:-1])
        opening = (texts_end - words.n_words)[words.n_words > 0]
        after_bytes[opening] = False
        n_ids = np.where(unknown, words.lengths + after_bytes, 1)
        ends = n_ids.cumsum()
        at = ends - n_ids
        ids = np.empty(n_ids.sum(), dtype=np.int32)
        ids[at[~unknown]] = known[~unknown]
        ids[at[after_bytes]] = self.separator[0] + N_SPECIAL
        at += after_bytes
        lengths = words.lengths[unknown]
        data = words.data[slice_places(words.starts[unknown], lengths)]
        ids[slice_places(at[unknown], lengths)] = data.astype(np.int32) + N_SPECIAL
        return ids, np.diff(np.append(0, ends)[texts_end], prepend=0)
