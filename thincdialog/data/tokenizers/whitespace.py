from typing import Iterable, List

from ...registry import registry
from .vocabulary_tokenizer import VocabularyTokenizer


@registry.tokenizers("thincdialog.Whitespace.v1")
class WhitespaceTokenizer(VocabularyTokenizer):
    """What stands between white space, as it is. For texts that are tokenized already.

    lower, min_freq, max_size, byte_fallback: See ``VocabularyTokenizer``.
    """

    def split(self, text: str) -> List[str]:
        return (text.lower() if self.lower else text).split()

    def join(self, pieces: Iterable[str]) -> str:
        return " ".join(pieces)
