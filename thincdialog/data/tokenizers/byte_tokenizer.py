from typing import Iterable, List, Sequence, Tuple

import numpy as np

from ...registry import registry
from ..special_tokens import N_SPECIAL
from .tokenizer import Tokenizer

N_BYTES = 256


def to_bytes(text: str) -> bytes:
    """Encode a text in UTF-8. A lone surrogate becomes three bytes, as UTF-8 would encode its code
    point."""
    return text.encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> str:
    """Decode the bytes of a text. Bytes that are not valid become U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


@registry.tokenizers("thincdialog.Bytes.v1")
class ByteTokenizer(Tokenizer):
    """Use the UTF-8 bytes of a text as tokens, which takes 256 ids. The tokenizer needs no
    vocabulary, can encode every text, and ``decode`` restores each text exactly."""

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
