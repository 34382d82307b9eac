from typing import Iterable, List, Sequence, Tuple

import numpy as np

from ...registry import registry
from ..special_tokens import N_SPECIAL
from .tokenizer import Tokenizer

N_BYTES = 256


def to_bytes(text: str) -> bytes:
    """UTF-8; lone surrogates become the three bytes they would have."""
    return text.encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> str:
    """The text of bytes; what is no text at all becomes U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


@registry.tokenizers("thincdialog.Bytes.v1")
class ByteTokenizer(Tokenizer):
    """The bytes of a text in UTF-8, 256 ids. Needs no vocabulary, knows every
    text, and ``decode`` gives back exactly what was encoded."""

    needs_texts = False

    @property
    def n_ids(self) -> int:
        return N_SPECIAL + N_BYTES

    def pieces(self, text: str) -> List[str]:
        return [
            f"<{byte:02x}>" if byte > 126 or byte < 32 else chr(byte) for byte in to_bytes(text)
        ]

    def encode(self, text: str) -> np.ndarray:
        return np.frombuffer(to_bytes(text), dtype=np.uint8).astype(np.int32) + N_SPECIAL

    def _encode_group(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        parts = list(map(to_bytes, texts))
        ids = np.frombuffer(b"".join(parts), dtype=np.uint8).astype(np.int32) + N_SPECIAL
        return ids, np.fromiter(map(len, parts), np.int64, len(parts))

    def decode(self, ids: Iterable[int]) -> str:
        return from_bytes(bytes(each - N_SPECIAL for each in ids if each >= N_SPECIAL))
