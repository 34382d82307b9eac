from typing import Iterable, List, Sequence, Tuple

import numpy as np

from ...registry import registry
from ..special_tokens import UNKNOWN
from ..words import NormalForm, join_words, normalise, split_words
from .vocabulary_tokenizer import VocabularyTokenizer
from .word_bytes import find_words
from .word_table import SEED


@registry.tokenizers("thincdialog.Words.v1")
class WordTokenizer(VocabularyTokenizer):
    """Split texts in any script into words and punctuation marks (``data.words`` has the rules).

    lower (bool): Whether to put everything into lower case.
    normalize (str): Normal form of Unicode: "NFC", "NFKC" or "none".
    min_freq, max_size: See ``VocabularyTokenizer``.
    """

    def __init__(
        self,
        *,
        lower: bool = True,
        normalize: NormalForm = "NFC",
        min_freq: int = 1,
        max_size: int = 0,
    ):
        super().__init__(lower=lower, min_freq=min_freq, max_size=max_size)
        self.normalize = normalize

    def split(self, text: str) -> List[str]:
        return split_words(normalise(text, self.normalize, self.lower))

    def join(self, pieces: Iterable[str]) -> str:
        return join_words(pieces)

    def _encode_group(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        words = find_words(texts, self.normalize, self.lower)
        ids = self._find(words, words.hashes(SEED))
        ids[ids < 0] = UNKNOWN
        return ids.astype(np.int32), words.n_words
