"""A cache of the vectors of candidate replies, which are valid until the weights change."""

from threading import Lock
from typing import Any, Callable, Dict, List, Sequence, Tuple

from thinc.api import get_array_module
from thinc.types import Floats2d

# A function from texts to vectors, shape (n, width).
Encode = Callable[[List[str]], Floats2d]
# Bytes of memory for the vectors of texts that are not in a lasting list.
MOST_BYTES = 1 << 27


class CandidateVectors:
    """Cache vectors of texts. The vectors of lasting lists (such as the fixed candidates) are kept
    until the weights change; vectors of other texts are all dropped when they no longer fit. The
    cache can be used by several threads, and copies of it start empty.

    most_bytes (int): Bytes of memory for the vectors of texts that are not in a lasting list;
        exceeded only if a single call needs more.
    """

    def __init__(self, most_bytes: int = MOST_BYTES):
        self.most_bytes = most_bytes
        self._lock = Lock()
        self.forget()

    def __reduce__(self) -> Tuple[Any, ...]:
        return CandidateVectors, (self.most_bytes,)

    def forget(self) -> None:
        """Drop all vectors, because the weights have changed."""
        with self._lock:
            # Identity of each lasting list to the list and its vectors.
            self._lasting: Dict[int, Tuple[Sequence[str], Floats2d]] = {}
            # Text to its row in the table, which may have unused rows.
            self._rows: Dict[str, int] = {}
            self._table: Any = ()

    def of_lasting(self, texts: Sequence[str], encode: Encode) -> Floats2d:
        """Return the vectors of a list that is never changed and will be needed again.

        RETURNS (Floats2d): Vectors, shape (n_texts, width), which the caller must not change.
        """
        with self._lock:
            if id(texts) not in self._lasting:
                self._lasting[id(texts)] = texts, encode(list(texts))
            return self._lasting[id(texts)][1]

    def of(self, texts: Sequence[str], encode: Encode) -> Floats2d:
        """Return the vector of each text, shape (n_texts, width)."""
        with self._lock:
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
            # The operating system allocates pages only when they are written.
            shape = (n_rows, vectors.shape[1])
            self._table = get_array_module(vectors).zeros(shape, dtype=vectors.dtype)
        self._table[first:stop] = vectors
        self._rows.update(zip(new, range(first, stop)))
