"""Fills an embedding table with word vectors."""

import math
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np
from thinc.api import Ops
from thinc.initializers import uniform_init
from thinc.types import Floats2d

from ..errors import DataError

# Gives the vectors of some words, in UTF-8: of a path, words and a width.
Reader = Callable[[str, Collection[bytes], int], Iterable[Tuple[bytes, np.ndarray]]]

# Rows without a vector are drawn from +- this, as those of tables that begin with nothing.
_BOUND = 0.1
_TINY = 1e-30  # keeps vectors of zeros what they are
# Words, each with the number of its row.
Words = Dict[str, int]


class TableRows:
    """Which rows of embedding tables belong to which words, for those who fill tables.

    find (Callable[[], Words]): Called when the words are needed.
    coming (Collection[Tuple[int, ...]]): Shapes of parameters that come from elsewhere: for a
        table that may be one of them no file is read.
    lines (List[str]): What they have to say to the user.
    unread (List[Tuple[str, tuple]]): The files that were not read, and for which shape.
    """

    def __init__(self, find: Callable[[], Words], coming: Collection[Tuple[int, ...]] = ()):
        self._find, self._coming = find, coming
        self.unread: List[Tuple[str, tuple]] = []
        self.lines: List[str] = []
        # Of files that were read, for tables alike.
        self.known: Dict[Tuple[str, int], Any] = {}

    @cached_property
    def words(self) -> Words:
        """All that have a row."""
        return self._find()

    def is_coming(self, path: str, shape: tuple) -> bool:
        """Whether the table of a file comes from elsewhere."""
        is_coming = any(holds_rows(other, shape) for other in self._coming)
        if is_coming:
            self.unread.append((path, shape))
        return is_coming


def holds_rows(shape: tuple, rows: tuple) -> bool:
    """Whether a parameter has the shape of a table of vectors, or of one with several rows for
    each of its rows (BagEmbed has one for each segment)."""
    return len(shape) == 2 and shape[1] == rows[1] and shape[0] % rows[0] == 0


# An initializer gets nothing but a shape; what its rows mean is known where a model is set up.
_ROWS: ContextVar[Optional[TableRows]] = ContextVar("table_rows", default=None)


@contextmanager
def rows_of_words(
    find: Callable[[], Words], coming: Collection[Tuple[int, ...]] = ()
) -> Iterator[TableRows]:
    """A stretch in which a model is set up for the first time, with words in its tables. (Of one
    whose weights are loaded next, no file is read.) Arguments as of ``TableRows``.

    YIELDS (TableRows): To be filled with lines for the user.
    """
    rows = TableRows(find, coming)
    token = _ROWS.set(rows)
    try:
        yield rows
    finally:
        _ROWS.reset(token)


def word_vectors_init(read: Reader, path: str, ops: Ops, shape: tuple) -> Floats2d:
    """A table of word vectors.

    read (Reader): Reads the vectors.
    path (str): What it reads.
    shape (Tuple[int, int]): (n_rows, width).
    RETURNS (Floats2d): Zeros outside of ``rows_of_words``, and for a table that is coming.
    """
    rows = _ROWS.get()
    if rows is None or rows.is_coming(path, shape):
        return ops.alloc2f(*shape)
    n_rows, width = shape
    known = rows.known.get((path, width))
    if known is None:
        known = rows.known[path, width] = _find_vectors(read, path, rows, width)
    numbers, vectors = known
    E: Any = uniform_init(ops, (n_rows, width), lo=-_BOUND, hi=_BOUND)
    E[ops.xp.asarray(numbers)] = ops.xp.asarray(vectors)
    return E


def _find_vectors(
    read: Reader, path: str, rows: TableRows, width: int
) -> Tuple[np.ndarray, np.ndarray]:
    """Numbers of rows, int64, shape (n,), and their vectors, shape (n, width)."""
    words = {word.encode("utf8", "surrogatepass"): row for word, row in rows.words.items()}
    if not words:
        text = "gives vectors to words, but the tokenizer's ids are no words"
        raise DataError(path, f"{text}: use one such as thincdialog.Words.v1")
    found = set()
    vectors: Dict[int, np.ndarray] = {}
    for word, vector in read(path, words, width):
        found.add(word)
        # Of words that share a row the first one, which is the most frequent, has it.
        vectors.setdefault(words[word], vector)
    if not found:
        some = ", ".join(repr(word) for word in list(rows.words)[:3])
        text = f"has none of the {len(words):,} words of the training data, such as {some}"
        raise DataError(path, f"{text}: is it of another language, or of another case?")
    line = f"{path}: vectors of {len(found):,} of {len(words):,} words"
    line += f" ({100 * len(found) / len(words):.1f} %)"
    n_without = len(found) - len(vectors)
    if n_without:
        line += f"; {n_without:,} of them share a row with a more frequent word, and get its vector"
    rows.lines.append(line)
    found_vectors = np.stack(list(vectors.values()))
    # As large, on average, as the rows that are drawn: a step changes them as much.
    size = max(math.sqrt(float(np.square(found_vectors).mean())), _TINY)
    return np.array(list(vectors), dtype=np.int64), found_vectors * (_BOUND / 3**0.5 / size)
