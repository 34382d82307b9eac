"""Vectors of candidate replies, encoded once for as long as the weights stay."""

from threading import Lock
from typing import Any, Callable, Dict, List, Sequence, Tuple

from thinc.api import get_array_module
from thinc.types import Floats2d

# Texts to vectors, shape (n, width).
Encode = Callable[[List[str]], Floats2d]
# Bytes of vectors of passing texts that are kept.
MOST_BYTES = 1 << 27


class CandidateVectors:
    """Keeps vectors of texts, for several threads, too: those of lists that last, and those of
    texts that pass by, which are all dropped once there are too many. Copies keep none.

    most_bytes (int): Of vectors of passing texts; more only if one call needs them.
    has_any (bool): Whether vectors are kept, or computed just now.
    """

    def __init__(self, most_bytes: int = MOST_BYTES):
        self.most_bytes = most_bytes
        self._lock = Lock()
        self.forget()

    def __reduce__(self) -> Tuple[Any, ...]:
        return CandidateVectors, (self.most_bytes,)

    def forget(self) -> None:
        """Drop all vectors: the weights have changed."""
        with self._lock:
            self.has_any = False
            # Lists of texts, by their identity, with their vectors.
            self._lasting: Dict[int, Tuple[Sequence[str], Floats2d]] = {}
            # Each text's row in a table, which has room for more of them.
            self._rows: Dict[str, int] = {}
            self._table: Any = ()

    def of_lasting(self, texts: Sequence[str], encode: Encode) -> Floats2d:
        """The vectors of a list that stays as it is and will be asked for again.

        RETURNS (Floats2d): Shape (n_texts, width); not to be changed.
        """
        with self._lock:
            self.has_any = True
            if id(texts) not in self._lasting:
                self._lasting[id(texts)] = texts, encode(list(texts))
            return self._lasting[id(texts)][1]

    def of(self, texts: Sequence[str], encode: Encode) -> Floats2d:
        """The vector of each text; shape (n_texts, width)."""
        with self._lock:
            self.has_any = True
            distinct = dict.fromkeys(texts)
            new = [text for text in distinct if text not in self._rows]
            if len(self._rows) + len(new) > len(self._table):
                self._rows, new = {}, list(distinct)
            if new:
                self._add(new, encode(new))
            rows = [self._rows[text] for text in texts]
            return self._table[get_array_module(self._table).asarray(rows)]

    def _add(self, new: List[str], vectors: Any) -> None:
        first = len(self._rows)
        stop = first + len(new)
        if stop > len(self._table):
            n_rows = max(stop, self.most_bytes // vectors[0].nbytes)
            # Memory that is not written yet takes no room.
            shape = (n_rows, vectors.shape[1])
            self._table = get_array_module(vectors).zeros(shape, dtype=vectors.dtype)
        self._table[first:stop] = vectors
        self._rows.update(zip(new, range(first, stop)))
