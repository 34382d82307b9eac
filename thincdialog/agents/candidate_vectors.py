"""Vectors of candidate replies, encoded once for as long as the weights stay."""

from typing import Any, Callable, Dict, List, Sequence

from thinc.api import Ops
from thinc.types import Floats2d


class CandidateVectors:
    """Encodes each distinct text once and hands out rows.

    encode (Callable[[List[str]], Floats2d]): Texts to vectors, shape (n, width).
    chunk (int): Texts encoded together.
    """

    def __init__(self, ops: Ops, encode: Callable[[List[str]], Floats2d], chunk: int = 512):
        self.ops = ops
        self.encode = encode
        self.chunk = chunk
        self.forget()

    def forget(self) -> None:
        """Drop all vectors, because the weights have changed."""
        self._rows: Dict[str, int] = {}
        self._vectors: Any = None

    def rows(self, texts: Sequence[str]) -> List[int]:
        """The row of each text in ``vectors``; unknown texts are encoded first."""
        known = self._rows
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            blocks = [] if self._vectors is None else [self._vectors]
            for start in range(0, len(new), self.chunk):
                blocks.append(self.encode(new[start : start + self.chunk]))
            self._vectors = self.ops.xp.concatenate(blocks)
            # Only now: an error while encoding must leave no text without a vector.
            for text in new:
                known[text] = len(known)
        return [known[text] for text in texts]

    @property
    def vectors(self) -> Floats2d:
        """All vectors so far, shape (n_texts, width), float32."""
        return self._vectors
