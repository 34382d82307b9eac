from typing import Iterable, List

from ...registry import registry
from .vocabulary_tokenizer import VocabularyTokenizer


@registry.tokenizers("thincdialog.Whitespace.v1")
class WhitespaceTokenizer(VocabularyTokenizer):
    """What stands between white space, as it is. For texts that are tokenized already.

    lower (bool): Whether to put everything into lower case.
    min_freq, max_size, byte_fallback: See ``VocabularyTokenizer``.
    """

    def __init__(
        self,
        *,
        lower: bool = False,
        min_freq: int = 1,
        max_size: int = 0,
        byte_fallback: bool = False,
    ):
        super().__init__(min_freq=min_freq, max_size=max_size, byte_fallback=byte_fallback)
        self.lower = lower

    def split(self, text: str) -> List[str]:
        return (text.lower() if self.lower else text).split()

    def join(self, pieces: Iterable[str]) -> str:
        return " ".join(pieces)
