from typing import Iterable, List

from ...registry import registry
from ..words import NormalForm, join_words, normalise, split_words
from .vocabulary_tokenizer import VocabularyTokenizer


@registry.tokenizers("thincdialog.Words.v1")
class WordTokenizer(VocabularyTokenizer):
    """Words and punctuation marks of any script (``data.words`` has the rules).

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
        super().__init__(min_freq=min_freq, max_size=max_size, byte_fallback=byte_fallback)
        self.lower = lower
        self.normalize = normalize

    def split(self, text: str) -> List[str]:
        return split_words(normalise(text, self.normalize, self.lower))

    def join(self, pieces: Iterable[str]) -> str:
        return join_words(pieces)
