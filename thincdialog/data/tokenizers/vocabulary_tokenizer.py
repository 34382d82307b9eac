"""What the tokenizers with a vocabulary have in common."""

from itertools import chain, repeat
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from ..special_tokens import N_SPECIAL, SPECIAL_TOKENS, UNKNOWN
from ..vocabulary import Progress, Vocabulary
from .byte_ids import N_BYTES, from_bytes, to_bytes
from .tokenizer import Tokenizer, check_range

VOCABULARY = "vocabulary.jsonl"


def built(tokenizer: Tokenizer, vocabulary: Optional[Vocabulary]) -> Vocabulary:
    """The vocabulary, if it is there.

    RAISES (ValueError): If it is not: the tokenizer was neither built nor loaded.
    """
    if vocabulary is None:
        raise ValueError(f"{type(tokenizer).__name__} has no vocabulary yet: call build() first")
    return vocabulary


class VocabularyTokenizer(Tokenizer):
    """Base: a subclass says how to ``split`` a text and ``join`` the pieces again.

    min_freq (int): Rarer pieces are unknown, 1 or more.
    max_size (int): Pieces to keep, the most frequent; 0 for no limit.
    byte_fallback (bool): Whether an unknown piece becomes the ids of its bytes
        (256 ids more) instead of ``<unk>``; then ``decode`` gives all pieces back.
    separator (bytes): What stands between two unknown pieces in a row.
    RAISES (ValueError): If a number is out of range.
    """

    separator = b" "

    def __init__(self, *, min_freq: int, max_size: int, byte_fallback: bool):
        self.min_freq = check_range("min_freq", min_freq, 1)
        self.max_size = check_range("max_size", max_size, 0)
        self.byte_fallback = byte_fallback
        # Bytes come before the vocabulary, so that their ids do not depend on it.
        self.first_id = N_SPECIAL + (N_BYTES if byte_fallback else 0)
        self._vocabulary: Optional[Vocabulary] = None
        self._ids: Dict[str, int] = {}

    @property
    def n_ids(self) -> int:
        return self.first_id + len(self.vocabulary)

    @property
    def vocabulary(self) -> Vocabulary:
        """RAISES (ValueError): If the tokenizer was neither built nor loaded."""
        return built(self, self._vocabulary)

    def split(self, text: str) -> List[str]:
        raise NotImplementedError

    def join(self, pieces: Iterable[str]) -> str:
        raise NotImplementedError

    def build(self, texts: Iterable[str], progress: Optional[Progress] = None) -> None:
        self._set(
            Vocabulary.build(
                texts,
                self.split,
                min_freq=self.min_freq,
                max_size=self.max_size,
                progress=progress,
            )
        )

    def _set(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ids = self._index()

    def _index(self) -> Dict[str, int]:
        return {token: i for i, token in enumerate(self.vocabulary.tokens, self.first_id)}

    def pieces(self, text: str) -> List[str]:
        return self.split(text)

    def encode(self, text: str) -> np.ndarray:
        pieces = self.split(text)
        known = self._ids or self._index()
        ids = [known.get(piece, UNKNOWN) for piece in pieces]
        if self.byte_fallback and UNKNOWN in ids:
            ids = self._with_bytes(pieces, ids)
        return np.array(ids, dtype=np.int32)

    def _encode_group(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        if self.byte_fallback:
            return super()._encode_group(texts)
        known = self._ids or self._index()
        pieces = list(map(self.split, texts))
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        ids = map(known.get, chain.from_iterable(pieces), repeat(UNKNOWN))
        return np.fromiter(ids, np.int32, lengths.sum()), lengths

    def _with_bytes(self, pieces: List[str], ids: List[int]) -> List[int]:
        filled: List[int] = []
        after_bytes = False
        for piece, known in zip(pieces, ids):
            if known != UNKNOWN:
                filled.append(known)
            else:
                data = (self.separator if after_bytes else b"") + to_bytes(piece)
                filled.extend(byte + N_SPECIAL for byte in data)
            after_bytes = known == UNKNOWN
        return filled

    def decode(self, ids: Iterable[int]) -> str:
        tokens = self.vocabulary.tokens
        pieces: List[str] = []
        data = bytearray()
        for each in ids:
            if N_SPECIAL <= each < self.first_id:
                data.append(each - N_SPECIAL)
                continue
            self._flush(data, pieces)
            if each >= self.first_id:
                pieces.append(tokens[each - self.first_id])
            elif each == UNKNOWN:
                pieces.append(SPECIAL_TOKENS[UNKNOWN])
        self._flush(data, pieces)
        return self.join(pieces)

    def _flush(self, data: bytearray, pieces: List[str]) -> None:
        """Turn the bytes gathered so far into pieces."""
        if data:
            texts = data.split(self.separator) if self.separator else [data]
            pieces.extend(from_bytes(bytes(text)) for text in texts)
            data.clear()

    def to_disk(self, folder: Path) -> None:
        super().to_disk(folder)
        self.vocabulary.to_disk(folder / VOCABULARY)

    def from_disk(self, folder: Path) -> None:
        self._set(Vocabulary.from_disk(folder / VOCABULARY))
