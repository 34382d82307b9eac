"""The base classes of tokenizers with a vocabulary, and two tokenizers that only split texts."""

from pathlib import Path
from typing import Dict, Iterable, List, Optional

import numpy as np

from ...registry import registry
from ..special_tokens import N_SPECIAL, SPECIAL_TOKENS, UNKNOWN
from ..vocabulary import Progress, Vocabulary
from .tokenizer import Tokenizer, check_range
from .word_bytes import WordBytes
from .word_table import WordTable

VOCABULARY = "vocabulary.jsonl"


class HasVocabulary(Tokenizer):
    """Build a vocabulary of the pieces into which ``split`` cuts texts, and number them. The base
    class of tokenizers with a vocabulary.

    min_freq (int): Minimum count of a piece in the vocabulary, 1 or more; rarer pieces are unknown.
    max_size (int): Maximum number of pieces, the most frequent ones; 0 for no limit.
    first_id (int): Id of the first piece; lower ids have other meanings.
    RAISES (ValueError): If a number is out of range.
    """

    needs_texts = True

    def __init__(self, *, min_freq: int, max_size: int, first_id: int):
        self.min_freq = check_range("min_freq", min_freq, 1)
        self.max_size = check_range("max_size", max_size, 0)
        self.first_id = first_id
        self._vocabulary: Optional[Vocabulary] = None
        self._ids: Dict[str, int] = {}
        self._table: Optional[WordTable] = None

    @property
    def n_ids(self) -> int:
        return self.first_id + len(self.vocabulary)

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary.

        RAISES (ValueError): If the tokenizer was neither built nor loaded.
        """
        if self._vocabulary is None:
            raise ValueError(
                f"{type(self).__name__} has no vocabulary yet: call build() first, or from_disk()"
            )
        return self._vocabulary

    def split(self, text: str) -> List[str]:
        """Return the pieces of a text, in order."""
        raise NotImplementedError

    def build(self, texts: Iterable[str], progress: Optional[Progress] = None) -> None:
        limits = {"min_freq": self.min_freq, "max_size": self.max_size}
        self._set(Vocabulary.build(texts, self.split, progress=progress, **limits))

    def _set(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ids = {token: i for i, token in enumerate(vocabulary.tokens, self.first_id)}
        self._table = None

    def word_ids(self, texts: Iterable[str]) -> Dict[str, int]:
        return {word: i for i, word in enumerate(self.vocabulary.tokens, self.first_id)}

    def _known(self) -> Dict[str, int]:
        """Return the id of each piece of the vocabulary."""
        self.vocabulary  # noqa: B018  # Raises an error if there is none.
        return self._ids

    def _find(self, words: WordBytes, hashes: np.ndarray) -> np.ndarray:
        """Return the id of each word; -1 for unknown words."""
        if self._table is None:
            self._table = WordTable(self._known())
        return self._table.find(words, hashes)

    def to_disk(self, folder: Path) -> None:
        super().to_disk(folder)
        self.vocabulary.to_disk(folder / VOCABULARY)

    def from_disk(self, folder: Path) -> None:
        self._set(Vocabulary.from_disk(folder / VOCABULARY))


class VocabularyTokenizer(HasVocabulary):
    """Encode the pieces of a text as ids of a vocabulary. A subclass defines how to ``split`` a
    text into pieces, and how to ``join`` pieces again.

    lower (bool): Whether to put everything into lower case.
    min_freq (int): Minimum count of a piece in the vocabulary, 1 or more; rarer pieces are unknown.
    max_size (int): Maximum number of pieces, the most frequent ones; 0 for no limit.
    RAISES (ValueError): If a number is out of range.
    """

    def __init__(self, *, lower: bool = False, min_freq: int = 1, max_size: int = 0):
        super().__init__(min_freq=min_freq, max_size=max_size, first_id=N_SPECIAL)
        self.lower = lower

    def join(self, pieces: Iterable[str]) -> str:
        """Join pieces into a text."""
        raise NotImplementedError

    def pieces(self, text: str) -> List[str]:
        return self.split(text)

    def encode(self, text: str) -> np.ndarray:
        known = self._known()
        return np.array([known.get(piece, UNKNOWN) for piece in self.split(text)], dtype=np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        tokens, unknown = self.vocabulary.tokens, SPECIAL_TOKENS[UNKNOWN]
        known = (each for each in ids if each == UNKNOWN or each >= N_SPECIAL)
        return self.join(unknown if i == UNKNOWN else tokens[i - N_SPECIAL] for i in known)


@registry.tokenizers("thincdialog.Characters.v1")
class CharacterTokenizer(VocabularyTokenizer):
    """Use every character (code point), including white space, as a token, so that ``decode``
    restores known characters exactly.

    lower, min_freq, max_size: See ``VocabularyTokenizer``.
    """

    def split(self, text: str) -> List[str]:
        return list(text.lower() if self.lower else text)

    def join(self, pieces: Iterable[str]) -> str:
        return "".join(pieces)


@registry.tokenizers("thincdialog.Whitespace.v1")
class WhitespaceTokenizer(VocabularyTokenizer):
    """Split a text at white space only. For texts that are already tokenized.

    lower, min_freq, max_size: See ``VocabularyTokenizer``.
    """

    def split(self, text: str) -> List[str]:
        return (text.lower() if self.lower else text).split()

    def join(self, pieces: Iterable[str]) -> str:
        return " ".join(pieces)
