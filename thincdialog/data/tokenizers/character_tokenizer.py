from typing import Iterable, List

from ...registry import registry
from .vocabulary_tokenizer import VocabularyTokenizer


@registry.tokenizers("thincdialog.Characters.v1")
class CharacterTokenizer(VocabularyTokenizer):
    """Every character (code point), white space included; known ones come back exactly.

    lower, min_freq, max_size, byte_fallback: See ``VocabularyTokenizer``.
    """

    separator = b""

    def split(self, text: str) -> List[str]:
        return list(text.lower() if self.lower else text)

    def join(self, pieces: Iterable[str]) -> str:
        return "".join(pieces)
