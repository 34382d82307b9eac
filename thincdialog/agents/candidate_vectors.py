"""Vectors of candidate replies, encoded once for as long as the weights stay."""

from threading import Lock
from typing import Any, Callable, Dict, List, Sequence

from thinc.api import Ops
from thinc.types import Floats2d


class CandidateVectors:
    """Encodes each distinct text once and hands out rows, also to several threads.

    encode (Callable[[List[str]], Floats2d]): Texts to vectors, shape (n, width).
    chunk (int): Texts encoded together.
    vectors (Floats2d): All so far, shape (n_texts, width), float32.
    """

    def __init__(self, ops: Ops, encode: Callable[[List[str]], Floats2d], chunk: int = 512):
        self.ops = ops
        self.encode = encode
        self.chunk = chunk
        self.vectors: Any = None
        self._version = -1
        self._rows: Dict[str, int] = {}
        self._lock = Lock()

    def rows(self, texts: Sequence[str], version: int) -> List[int]:
        """The row of each text in ``vectors``; unknown texts are encoded first.

        version (int): Of the weights; vectors of another one are forgotten.
        """
        with self._lock:
            if version != self._version:
                self._version, self.vectors, self._rows = version, None, {}
            known = self._rows
            new = [text for text in dict.fromkeys(texts) if text not in known]
            if new:
                blocks: List[Any] = [] if self.vectors is None else [self.vectors]
                for start in range(0, len(new), self.chunk):
                    blocks.append(self.encode(new[start : start + self.chunk]))
                self.vectors = self.ops.xp.concatenate(blocks)
                # Only now: an error while encoding must leave no text without a vector.
                known.update(zip(new, range(len(known), len(known) + len(new))))
            return [known[text] for text in texts]
