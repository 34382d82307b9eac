"""Vectors of candidate replies, encoded once for as long as the weights stay."""

from threading import Lock
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from thinc.api import Ops
from thinc.types import Floats2d

# Bytes of vectors of passing texts that are kept.
MOST_BYTES = 1 << 27


class CandidateVectors:
    """Encodes texts and keeps their vectors, for several threads, too: those of lists that last,
    and those of texts that pass by, which are all dropped once there are too many.

    encode (Callable[[List[str]], Floats2d]): Texts to vectors, shape (n, width).
    chunk (Optional[int]): Texts encoded together; if None, 512, and 8,192 on a GPU, to which
        a large batch costs little.
    most_bytes (int): Of vectors of passing texts; more only if one call needs them.
    are_kept (bool): Whether there are any vectors to forget.
    """

    def __init__(
        self,
        ops: Ops,
        encode: Callable[[List[str]], Floats2d],
        chunk: Optional[int] = None,
        most_bytes: int = MOST_BYTES,
    ):
        self.ops, self.encode = ops, encode
        self.chunk = chunk or (8192 if ops.device_type == "gpu" else 512)
        self.most_bytes = most_bytes
        self._version = -1
        self._lock = Lock()
        self._forget()

    def forget(self) -> None:
        """Give back the memory of all vectors."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self.are_kept = False
        # Lists of texts, by their identity, with their vectors.
        self._lasting: Dict[int, Tuple[Sequence[str], Floats2d]] = {}
        self._forget_passing()

    def _forget_passing(self) -> None:
        # Each text's row in a table, which has room for more of them.
        self._rows: Dict[str, int] = {}
        self._table: Any = None

    def of_lasting(self, texts: Sequence[str], version: int) -> Floats2d:
        """The vectors of a list that stays as it is and will be asked for again.

        version (int): Of the weights; vectors of another one are forgotten.
        RETURNS (Floats2d): Shape (n_texts, width); not to be changed.
        """
        with self._lock:
            self._come_to(version)
            if id(texts) not in self._lasting:
                self._lasting[id(texts)] = texts, self._encoded(texts)
            return self._lasting[id(texts)][1]

    def of(self, texts: Sequence[str], version: int) -> Floats2d:
        """The vector of each text; shape (n_texts, width).

        version (int): As for ``of_lasting``.
        """
        with self._lock:
            self._come_to(version)
            distinct = dict.fromkeys(texts)
            new = [text for text in distinct if text not in self._rows]
            if self._table is not None:
                n_bytes = (len(self._rows) + len(new)) * self._table[0].nbytes
                if new and n_bytes > self.most_bytes:
                    self._forget_passing()
                    new = list(distinct)
            if new:
                self._add(new)
            return self._table[self.ops.asarray1i([self._rows[text] for text in texts])]

    def _come_to(self, version: int) -> None:
        if version != self._version:
            self._version = version
            self._forget()

    def _add(self, new: List[str]) -> None:
        vectors, n_known = self._encoded(new), len(self._rows)
        end = n_known + len(new)
        if self._table is None:
            self._table = vectors
        elif end > len(self._table):
            # Twice as many, as far as they may be, so that each row is rarely copied.
            most = min(2 * n_known, self.most_bytes // vectors[0].nbytes)
            table = self.ops.alloc2f(max(end, most), vectors.shape[1])
            table[:n_known] = self._table[:n_known]
            self._table = table
        self._table[n_known:end] = vectors
        # Only now: an error while encoding must leave no text without a vector.
        self._rows.update(zip(new, range(n_known, end)))

    def _encoded(self, texts: Sequence[str]) -> Floats2d:
        self.are_kept = True
        starts = range(0, len(texts), self.chunk)
        blocks = [self.encode(list(texts[start : start + self.chunk])) for start in starts]
        vectors: Floats2d = self.ops.xp.concatenate(blocks)
        return vectors
